"""Files that programs of a person take as instructions, by kind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from oh_jupyter.runs_when import change_runs_when, runs_when
from oh_jupyter.sandbox.profile import PLACEHOLDERS, PROTECTED_DIRECTORIES

RUN = {
    "Makefile": "you run make",
    "sub/GNUmakefile": "you run make",
    "rules/common.mk": "you run make",
    ".envrc": "you enter the folder",
    "conftest.py": "you run pytest",
    "tests/deep/conftest.py": "you run pytest",
    "sitecustomize.py": "you start Python",
    "usercustomize.py": "you start Python",
    "lib/site-packages/evil.pth": "you start Python",
    "x.pth": "you start Python",
    "setup.py": "you install the project",
    "pyproject.toml": "you install the project",
    "package.json": "you run npm",
    "vite.config.ts": "you run vite",
    ".eslintrc.cjs": "you run eslint",
    ".husky/pre-commit": "you run git",
    ".pre-commit-config.yaml": "you run git",
    "noxfile.py": "you run nox",
    "tox.ini": "you run tox",
    ".github/workflows/test.yml": "you push",
    ".gitlab-ci.yml": "you push",
    "Jenkinsfile": "you push",
    ".vscode/tasks.json": "you open the folder in VS Code",
    "sub/.vscode/settings.json": "you open the folder in VS Code",
    "x.code-workspace": "you open the folder in VS Code",
    ".idea/workspace.xml": "you open the folder in a JetBrains IDE",
    ".claude/settings.json": "you start Claude Code",
    ".codex/config.toml": "you start Codex",
    ".cursor/mcp.json": "you open the folder in Cursor",
    ".mcp.json": "you start an agent",
    ".git": "you run git",
    ".git/config": "you run git",
    ".GIT/CONFIG": "you run git",
    ".git/commondir": "you run git",
    ".git/config.worktree": "you run git",
    ".git/hooks/pre-commit": "you run git",
    ".git/info/attributes": "you run git",
    ".git/modules/a/config": "you run git",
    ".git/worktrees/a/gitdir": "you run git",
    ".git/something/new": "you run git",
    "vendor/lib/.git/config": "you run git",
    ".gitmodules": "you run git",
    ".gitattributes": "you run git",
    "random.py": "you import random",
    "sub/random.py": "you import random",
    "random/__init__.py": "you import random",
    "pytest.py": "you import pytest",
    "IPython/__init__.py": "you import IPython",
    "__pycache__/a.cpython-312.pyc": "you import it",
    "a.so": "you import it",
    "jupyter_server_config.py": "you start Jupyter",
}

FREE = [
    "AGENTS.md",
    "CLAUDE.md",
    "README.md",
    "analysis.py",
    "tests/test_conftest.py",
    "test_random.py",
    "my_random.py",
    "package/random.py",
    "package/__init__.py",
    "random.txt",
    "random/data.csv",
    "notebook.ipynb",
    "makefile.txt",
    "data/package-lock.json",
    ".gitignore",
    ".github/ISSUE_TEMPLATE/bug.md",
    ".env",
    "vscode/tasks.json",
    "git/config",
    "a.git.txt",
    ".git/objects/ab/cdef",
    ".git/refs/heads/main",
    ".git/logs/HEAD",
    ".git/index",
    ".git/HEAD",
    ".git/packed-refs",
    ".git/ORIG_HEAD",
    ".git/COMMIT_EDITMSG",
    ".git/MERGE_MSG",
]


@pytest.fixture
def workspace(tmp_path: Path) -> str:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    return os.path.realpath(tmp_path)


@pytest.mark.parametrize(("path", "when"), RUN.items())
def test_a_program_is_named_with_the_persons_action(workspace: str, path: str, when: str) -> None:
    assert runs_when(path, workspace) == when
    assert runs_when(os.path.join(workspace, path), workspace) == when


@pytest.mark.parametrize("path", FREE)
def test_other_files_are_free(workspace: str, path: str) -> None:
    assert runs_when(path, workspace) is None


def test_files_protected_by_boxes_are_in_the_table(workspace: str) -> None:
    protected = [*PLACEHOLDERS, *(f"{folder}/x" for folder in PROTECTED_DIRECTORIES)]
    assert [path for path in protected if runs_when(path, workspace) is None] == []


def test_a_path_that_no_system_has_is_free(workspace: str) -> None:
    assert runs_when("a\0b/c.txt", workspace) is None


def test_names_above_the_workspace_do_not_count(tmp_path: Path) -> None:
    assert runs_when("notes.md", str(tmp_path / ".claude" / "worktrees" / "a")) is None
    assert runs_when(str(tmp_path / "Makefile"), str(tmp_path / "other")) == "you run make"


def test_includes_of_a_repository_run(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, value in (("core.hooksPath", "tools/hooks"), ("include.path", "../team.cfg")):
        subprocess.run(["git", "-C", tmp_path, "config", name, value], check=True)
    assert runs_when("tools/hooks/pre-push", str(tmp_path)) == "you run git"
    assert runs_when("team.cfg", str(tmp_path)) == "you run git"
    assert runs_when("tools/other", str(tmp_path)) is None


def test_a_git_directory_counts_by_any_name(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", tmp_path / "data"], check=True)
    assert runs_when("data/config", str(tmp_path)) == "you run git"
    assert runs_when("data/refs/heads/x", str(tmp_path)) is None


def test_an_environment_runs(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert runs_when("env/bin/activate", str(tmp_path)) == "you start Python"


def test_a_program_runs_by_its_name_only_from_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ls"
    assert runs_when(str(program), str(tmp_path)) is None
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert runs_when(str(program), str(tmp_path)) == "you run ls"
    program.parent.mkdir()
    program.touch(mode=0o644)
    assert change_runs_when(str(program), str(tmp_path), None, b"") is None
    program.chmod(0o755)
    assert change_runs_when(str(program), str(tmp_path), None, b"") == "you run ls"


def test_a_module_that_was_there_is_the_persons(workspace: str) -> None:
    Path(workspace, "random.py").write_text("x = 1\n", encoding="utf-8")
    assert runs_when("random.py", workspace) is None
    assert change_runs_when("random.py", workspace, b"x = 0\n", b"x = 1\n") is None
    assert change_runs_when("random.py", workspace, None, b"x = 1\n") == "you import random"


@pytest.mark.parametrize(
    ("path", "old", "new", "when"),
    [
        ("Makefile", b"a:\n", None, None),
        ("Makefile", b"a:\n", b"b:\n", "you run make"),
        ("pyproject.toml", b"[project]\nname='a'\n", b"[project]\nname='b'\n", None),
        ("pyproject.toml", None, b"[project]\nname='b'\n", None),
        (
            *("pyproject.toml", b"[project]\nname='a'\n"),
            *(b"[build-system]\nbackend-path=['.']\n", "you install the project"),
        ),
        ("pyproject.toml", b"[project]\n", b"[project\n", "you install the project"),
        ("package.json", b'{"name": "a"}', b'{"name": "b"}', None),
        ("package.json", b'{"name": "a"}', b'{"scripts": {"test": "x"}}', "you run npm"),
        ("package.json", None, b"[]", "you run npm"),
        ("package.json", None, b"[" * 100_000, "you run npm"),
        (".vscode/package.json", b"{}", b"{ }", "you open the folder in VS Code"),
        (".gitattributes", None, b"*.png binary\n", None),
        (".gitattributes", b"*.png binary\n", b"*.png filter=lfs\n", "you run git"),
        ("model.pth", None, b"PK\x03\x04\0", None),
        ("x.pth", None, b"import os\n", "you start Python"),
    ],
)
def test_a_change_counts_only_in_the_part_that_runs(
    workspace: str, path: str, old: bytes | None, new: bytes | None, when: str | None
) -> None:
    assert change_runs_when(path, workspace, old, new) == when


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_configuration_that_is_a_pipe_does_not_block(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "config")
    assert runs_when("notes.txt", str(tmp_path)) is None
    assert runs_when("Makefile", str(tmp_path)) == "you run make"
