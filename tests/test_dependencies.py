"""Dependencies of an installation and their compatibility."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

NOT_IN_ALL = {
    *("all", "dev", "docs", "test"),
    *("openhands", "jupyter-ai", "deepagents", "e2b", "inspect-ai"),
    *("harbor", "hub", "openai-agents", "smolagents"),
}
"""Extras that are for development, or that change the environment of every JupyterLab."""

PLAIN_INSTALLATION = """
import importlib, importlib.abc, pkgutil, sys

blocked = set(sys.argv[1].split(","))

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import oh_jupyter
for module in pkgutil.walk_packages(oh_jupyter.__path__, "oh_jupyter."):
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        print(module.name, error.name)
"""
NEEDS_MORE = {
    # A worker that uses packages of its own environment; its caller selects them.
    "oh_jupyter.browser.evaluation.gym_worker",
    "oh_jupyter.browser.evaluation.gym_tasks",
    # Of these there is one for each major of the SDK.
    "oh_jupyter.mcp_sdk.server_v1",
    "oh_jupyter.mcp_sdk.server_v2",
    # The extra says it, and needs Python 3.12.
    "oh_jupyter.openhands",
    # Jupyter AI loads it by its entry point.
    "oh_jupyter.server.jupyter_ai.persona",
    # They say which extra they need.
    "oh_jupyter.adapters.deepagents",
    "oh_jupyter.adapters.harbor",
    "oh_jupyter.adapters.inspect_ai",
    "oh_jupyter.adapters.openai_agents",
    "oh_jupyter.adapters.smolagents",
    "oh_jupyter.evaluation.acp_agent",
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def brought_along(requirements: list[str]) -> set[str]:
    """The distributions that requirements lead to, as far as they are installed here."""
    result: set[str] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = normal(requirement.name)
        for wanted in ("", *requirement.extras):
            if f"{name}[{wanted}]" in result:
                continue
            result.add(f"{name}[{wanted}]")
            try:
                needed = distribution(name).requires or []
            except PackageNotFoundError:
                continue
            waiting += [(Requirement(each), wanted) for each in needed]
    return {each.partition("[")[0] for each in result}


@pytest.mark.thorough
def test_a_plain_installation_has_all_imports_of_its_modules() -> None:
    base = brought_along(PROJECT["dependencies"]) | {"oh-jupyter"}
    blocked = {
        module
        for module, owners in packages_distributions().items()
        if not {normal(owner) for owner in owners} & base
    } - set(sys.stdlib_module_names)
    assert {"pypdfium2", "pandas", "openai", "jupyterlab"} <= blocked
    done = subprocess.run(
        [sys.executable, "-c", PLAIN_INSTALLATION, ",".join(sorted(blocked))],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    missing = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
    # The guests' modules are loaded by the one that says which extra they need.
    guests = {name for name, module in missing.items() if module == "acp"}
    assert all(name.startswith("oh_jupyter.agents.") for name in guests)
    # What tests inherit is for those who have pytest.
    tests = {name for name, module in missing.items() if module == "pytest"}
    assert all(name.startswith("oh_jupyter.testing") for name in tests)
    assert missing.keys() - guests - tests <= NEEDS_MORE, missing


def test_a_missing_extra_is_one_line_that_names_it(monkeypatch, tmp_path: Path) -> None:
    from oh_jupyter.browser.worker.pdf_view import pdf_to_html
    from oh_jupyter.errors import BrowserError

    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(BrowserError, match=r"pip install 'oh_jupyter\[documents\]'$"):
        pdf_to_html(tmp_path / "x.pdf")


def test_everything_in_all_is_an_extra_of_its_own() -> None:
    extras = PROJECT["optional-dependencies"]
    (requirement,) = (Requirement(each) for each in extras["all"])
    assert requirement.extras == extras.keys() - NOT_IN_ALL


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """Our release, of which a resolver needs nothing but what it requires."""
    folder = tmp_path_factory.mktemp("wheels")
    lines = [
        *("Metadata-Version: 2.1", "Name: oh_jupyter", "Version: 999.0"),
        *(f"Requires-Dist: {each}" for each in PROJECT["dependencies"]),
    ]
    for extra, requirements in PROJECT["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        for each in requirements:
            requirement, _, marker = each.partition(";")
            marker = f"({marker.strip()}) and " if marker else ""
            lines.append(f"Requires-Dist: {requirement}; {marker}extra == '{extra}'")
    info = "oh_jupyter-999.0.dist-info"
    with zipfile.ZipFile(folder / "oh_jupyter-999.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return folder


def resolved(wheels: Path, *arguments: str, python: str = sys.executable) -> dict[str, str]:
    """Return the packages that pip would install, by name; install nothing."""
    report = wheels / "report.json"
    subprocess.run(
        [
            *(python, "-m", "pip", "install", "--quiet", "--dry-run"),
            *("--ignore-installed", "--report", str(report), "--find-links", str(wheels)),
            *arguments,
        ],
        check=True,
        timeout=880,
    )
    packages = [each["metadata"] for each in json.loads(report.read_text())["install"]]
    return {normal(each["name"]): each["version"] for each in packages}


def release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_fresh_environment_gets_the_newest_jupyter_ai(wheels: Path, fresh_python: str) -> None:
    """By the command in the guide, in which no release is named."""
    wanted = ("oh_jupyter[jupyter-ai]==999.0", "jupyter-ai")
    versions = resolved(wheels, *wanted, python=fresh_python)
    assert release(versions["jupyter-ai"]) >= (3, 2)
    assert {"jupyter-ai-persona-manager", "jupyterlab", "agent-client-protocol"} <= versions.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_it_goes_together_with_jupyter_ai(wheels: Path) -> None:
    versions = resolved(wheels, "oh_jupyter[jupyter-ai]==999.0", "jupyter-ai>=3.2")
    assert release(versions["jupyter-ai"]) >= (3, 2)
    assert {"s3fs", "gcsfs", "playwright", "requests"} <= versions.keys()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "wanted",
    [
        ("oh_jupyter[agents]==999.0", "openhands-sdk", "openhands-tools"),
        ("oh_jupyter[openhands]==999.0",),
    ],
    ids=["beside", "extra"],
)
def test_it_goes_together_with_the_openhands_sdk(wheels: Path, wanted: tuple[str, ...]) -> None:
    """It needs Python 3.12, for which pip can resolve, but not build."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "func-timeout"],
        check=True,
        cwd=wheels,
    )
    versions = resolved(
        wheels,
        *("--python-version", "3.12", "--only-binary=:all:", "--ignore-requires-python"),
        *("--target", str(wheels / "nowhere")),
        *wanted,
    )
    assert release(versions["openhands-sdk"]) == release(versions["openhands-tools"]) >= (1, 58)
