"""No file of a workspace runs in our processes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import oh_jupyter
from oh_jupyter.browser.executable import printed_version
from oh_jupyter.installed import find_program, find_program_outside, python_environment
from oh_jupyter.testing import LiveKernel
from tests.hostile_folder import fill

PACKAGE = Path(oh_jupyter.__file__).parent

IMPORT_ALL = """
import sys, pathlib
sys.path.append({root!r})
import oh_jupyter
sys.path[:0] = ["", {workspace!r}]
for statement in {statements!r}:
    try:
        # The name of the file makes it a statement of the package.
        exec(compile(statement, {file!r}, "exec"), {{"__name__": "oh_jupyter.test"}})
    except ImportError as error:
        pass  # an optional dependency
"""


def lazy_imports() -> list[str]:
    """Return each import in a function of the package, as a statement."""
    statements = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                statements |= {f"import {name}" for name in names if name}
    return sorted(statements - {"import oh_jupyter.traits"})


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def nothing_runs(workspace: Path, tmp_path: Path) -> Iterator[None]:
    """Fill the workspace with modules and programs, none of which may have run at the end."""
    trace = tmp_path / "trace"
    fill(workspace, trace)
    yield
    assert not trace.exists(), trace.read_text()


def run(code: str, workspace: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=workspace, text=True, capture_output=True
    )


FEW = ("import html", "import colorsys", "import oh_jupyter.editor.lint", "import fsspec")


@pytest.mark.parametrize(
    "statements", [FEW, pytest.param(None, id="all", marks=pytest.mark.thorough)]
)
@pytest.mark.usefixtures("nothing_runs")
def test_a_lazy_import_means_the_installed_module(
    workspace: Path, statements: tuple[str, ...] | None
) -> None:
    code = IMPORT_ALL.format(
        root=str(PACKAGE.parent),
        workspace=str(workspace),
        statements=list(statements or lazy_imports()),
        file=str(PACKAGE / "statement.py"),
    )
    done = run(code, workspace)
    assert done.returncode == 0, done.stderr


def test_a_persons_own_modules_come_first_in_a_persons_code(workspace: Path) -> None:
    (workspace / "colorsys.py").write_text("mine = True\n")
    (workspace / "notes.py").write_text("import colorsys\nmine = colorsys.mine\n")
    done = run(
        "import sys, oh_jupyter; sys.path.insert(0, ''); import notes; print(notes.mine)", workspace
    )
    assert done.stdout == "True\n", done.stderr


@pytest.mark.usefixtures("nothing_runs")
def test_entry_points_of_a_workspace_do_not_count(workspace: Path) -> None:
    code = (
        "import sys, oh_jupyter; sys.path.insert(0, '')\n"
        "from oh_jupyter.skills import available\n"
        "from oh_jupyter.agents.commands import known_agents\n"
        "available(); print('local' in known_agents({}))\n"
    )
    done = run(code, workspace)
    assert done.stdout == "False\n", done.stderr


def test_programs_of_a_workspace_are_not_found(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workspace, tmp_path / "trace")
    (tmp_path / "link").symlink_to(workspace)
    monkeypatch.chdir(workspace)
    entries = ["", ".", str(workspace), str(tmp_path / "link"), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(entries))
    for find in (find_program, find_program_outside):
        program = find("git")
        assert program is not None
        assert os.path.isabs(program)
        assert not os.path.realpath(program).startswith(str(workspace))
    monkeypatch.setenv("PATH", str(workspace))
    assert find_program("git") is None


def test_our_processes_do_not_inherit_a_search_of_the_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "src", str(workspace / "src"), "/opt"]))
    assert python_environment()["PYTHONPATH"] == "/opt"


@pytest.mark.thorough
def test_nothing_of_the_workspace_runs_in_a_kernel(workspace: Path, tmp_path: Path) -> None:
    trace, document = tmp_path / "trace", workspace / "a.pdf"
    document.write_bytes(b"%PDF-1.4 broken")
    kernel = LiveKernel(workspace)
    try:
        kernel.execute("import jedi, pdb, tempfile")  # IPython's own
        fill(workspace, trace)
        view = kernel.act("edit", command="view", path=str(document))
        assert "Error in converting file to Markdown" in view["content"]
        assert kernel.act("read", path=str(document))["content"].startswith("data:application/pdf")
        assert kernel.act("run", command="cd .; pwd")["content"].strip() == str(workspace)
        path = str(workspace / "n.py")
        kernel.act("edit", command="create", path=path, file_text="x = 1\nprint(x)\n")
        edit = {"command": "str_replace", "old_str": "print(x)", "new_str": "print(y)"}
        linted = kernel.act("edit", path=path, enable_linting=True, **edit)
        assert "F821" in linted["content"]
        assert "high" in kernel.execute("%oh_run echo high")
        kernel.execute("%oh_store ls")
        assert not trace.exists(), trace.read_text()
    finally:
        kernel.close()


@pytest.mark.browser
@pytest.mark.usefixtures("nothing_runs")
def test_nothing_of_the_workspace_runs_in_a_browsers_worker(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oh_jupyter.browser import BrowserEnv

    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    monkeypatch.setenv("PATH", os.pathsep.join([str(workspace), os.environ["PATH"]]))
    browser = BrowserEnv()
    try:
        browser.step("goto('data:text/html,<title>Tides</title>')")
    finally:
        browser.close()


@pytest.mark.usefixtures("nothing_runs")
def test_nothing_of_the_workspace_runs_in_a_program_that_is_a_script(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Node.js of a Python package is one."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    script = tmp_path / "node"
    script.write_text(f"#!{sys.executable}\nimport html, json\nprint('v99.0.0')\n")
    script.chmod(0o755)
    assert printed_version(str(script)) == "v99.0.0"


@pytest.mark.parametrize("arguments", [["doctor"], ["mcp", "--help"]])
@pytest.mark.usefixtures("nothing_runs")
def test_nothing_of_the_workspace_runs_in_the_command(
    workspace: Path, arguments: list[str]
) -> None:
    program = Path(sys.executable).with_name("oh-jupyter")
    done = subprocess.run([program, *arguments], cwd=workspace, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
