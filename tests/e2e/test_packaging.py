"""The wheel: what is in it, and that it enables itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import oh_jupyter

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "oh_jupyter" / "labextension" / "package.json"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    if built := os.environ.get("OH_JUPYTER_TEST_WHEELS"):
        (path,) = Path(built).glob("*.whl")
        return zipfile.ZipFile(path)
    if not BUILT.exists():
        pytest.fail("build the JupyterLab extension first: cd labextension && jlpm build:prod")
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q"]
    subprocess.run([*build, "-w", str(target), str(ROOT)], check=True, timeout=280)
    (path,) = target.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.mark.thorough
def test_the_wheel_enables_both_extensions(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    (config,) = [
        n for n in names if n.endswith("etc/jupyter/jupyter_server_config.d/oh_jupyter.json")
    ]
    enabled = json.loads(wheel.read(config))["ServerApp"]["jpserver_extensions"]
    assert enabled == {"oh_jupyter": True}
    assert "oh_jupyter/mcp_tools/apps/table.html" in names
    lab = [n for n in names if "share/jupyter/labextensions/oh-jupyter/" in n]
    assert any(n.endswith("/package.json") for n in lab)
    assert any(n.endswith("/install.json") for n in lab)
    assert any("remoteEntry" in n for n in lab)


def test_the_wheel_has_the_package_once_and_typed(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()
    assert "oh_jupyter/py.typed" in names
    assert "oh_jupyter/browser/worker/probe.js" in names
    assert not [n for n in names if n.startswith("oh_jupyter/labextension")]
    assert not [n for n in names if n.startswith(("tests/", "notebooks/"))]


def test_the_versions_agree() -> None:
    package = json.loads((ROOT / "labextension" / "package.json").read_text())
    assert package["version"] == oh_jupyter.__version__
