"""Metadata of a release: equal in every file, and complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from oh_jupyter import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PACKAGE = json.loads((ROOT / "labextension" / "package.json").read_text("utf-8"))
RECIPE = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text("utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONDA_NAMES = {"playwright": "playwright-python"}


def test_there_is_one_version() -> None:
    versions = {PACKAGE["version"], CITATION["version"], RECIPE["context"]["version"]}
    assert versions == {__version__}


def test_a_version_is_set_everywhere(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "set-version"
    names = re.findall(r'^    "(.+)": r', script.read_text("utf-8"), re.MULTILINE)
    for name in [*names, "scripts/set-version"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, tmp_path / "scripts" / "set-version", "7.8.9rc1"], check=True)
    for name in names:
        before, after = (ROOT / name).read_text("utf-8"), (tmp_path / name).read_text("utf-8")
        assert before.replace(__version__, "7.8.9rc1") == after
    done = subprocess.run([sys.executable, script, "next"], stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr[:26]) == (1, "usage: scripts/set-version")


def test_news_are_between_the_marks_of_the_changelog() -> None:
    """Jupyter Releaser takes what is between its marks; below them are earlier releases."""
    whole = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (_, below) = whole.split("<!-- <END NEW CHANGELOG ENTRY> -->\n")
    assert re.match(r"\s*(## |$)", below)


def test_everything_names_one_repository() -> None:
    home = PROJECT["urls"]["Homepage"]
    assert PACKAGE["homepage"] == CITATION["repository-code"] == RECIPE["about"]["homepage"] == home
    assert PACKAGE["repository"]["url"] == f"{home}.git"
    assert PACKAGE["bugs"]["url"] == PROJECT["urls"]["Issues"]
    assert PACKAGE["jupyterlab"]["discovery"]["server"]["base"]["name"] == PROJECT["name"]


def test_conda_and_pip_install_the_same() -> None:
    wanted = [Requirement(each) for each in PROJECT["dependencies"]]
    needed = {
        (CONDA_NAMES.get(each.name, each.name), str(each.specifier))
        for each in wanted
        if each.marker is None
    }
    listed = [Requirement(each) for each in RECIPE["requirements"]["run"] if "$" not in each]
    assert {(each.name, str(each.specifier)) for each in listed} == needed


@pytest.mark.thorough
def test_a_failed_installation_names_the_missing_package() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "install", "no-such-package-of-ours"],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "No matching distribution found for no-such-package-of-ours" in done.stderr
    assert "check the network. Set PIP_INDEX_URL for another index" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_of_others_are_pinned(file: Path) -> None:
    def steps(value: Any) -> list[str]:
        if isinstance(value, dict):
            used = [value["uses"]] if "uses" in value else []
            return used + [use for each in value.values() for use in steps(each)]
        return [use for each in value for use in steps(each)] if isinstance(value, list) else []

    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    used = steps(workflow["jobs"])
    assert used
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use)] == []


@pytest.mark.thorough
def test_the_hubs_settings_are_those_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chart writes a file, which the server has to read, and whose settings it has to know."""
    from jupyter_server.serverapp import ServerApp

    from oh_jupyter.server.app import OhJupyter

    values = yaml.safe_load((ROOT / "examples" / "jupyterhub" / "values.yaml").read_text("utf-8"))
    (file,) = values["singleuser"]["extraFiles"].values()
    where = tmp_path / Path(file["mountPath"]).relative_to("/etc/jupyter")
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(json.dumps(file["data"]))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    server = ServerApp()
    server.load_config_file()
    known = {cls.__name__: cls for cls in (OhJupyter, *server.classes, ServerApp)}
    for name, settings in file["data"].items():
        assert dict(server.config[name]).items() >= settings.items()
        assert set(settings) <= set(known[name].class_trait_names()), name
