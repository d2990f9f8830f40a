"""Files that programs of a person take as instructions, each with the act that makes one run.

Reviews, summaries of turns and limits of tokens use the same table. It is by kind: a pattern
without a slash is the name of a file, one with a slash is the end of its path, and one that ends
with a slash is a folder with everything in it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.machinery import EXTENSION_SUFFIXES

from oh_jupyter.containment import is_within
from oh_jupyter.descriptors import read_regular
from oh_jupyter.installed import LIBRARY_FOLDERS

MAX_CONFIG_BYTES = 1024 * 1024
"""Maximum size of a repository's configuration that is read; an agent may have written it."""

GIT = "you run git"
START_PYTHON = "you start Python"
INSTALL = "you install the project"
NPM = "you run npm"

KINDS: Mapping[str, str] = {
    GIT: (
        ".gitmodules .gitconfig .gitattributes .husky/ .pre-commit-config.yaml "
        "lefthook.y*ml .lefthook.y*ml"
    ),
    "you open the folder in VS Code": ".vscode/ *.code-workspace",
    "you open the folder in a JetBrains IDE": ".idea/ .fleet/",
    "you open the folder in Visual Studio": ".vs/",
    "you open the folder in Zed": ".zed/",
    "you open the folder in Vim": ".vimrc .nvimrc .exrc .nvim.lua",
    "you open a file in Emacs": ".dir-locals.el .dir-locals-2.el",
    "you open the folder in a dev container": ".devcontainer/ .devcontainer.json",
    "you open the folder in Cursor": ".cursor/",
    "you open the folder in Windsurf": ".windsurf/",
    "you start Claude Code": ".claude/",
    "you start Codex": ".codex/",
    "you start Gemini CLI": ".gemini/",
    "you start OpenCode": ".opencode/ opencode.json opencode.jsonc",
    "you start OpenHands": ".openhands/",
    "you start an agent": ".mcp.json .kiro/ .roo/",
    "you enter the folder": ".envrc mise.toml .mise.toml .mise/ .direnv/",
    "you start a shell": (
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .inputrc "
        ".zshenv .zprofile .zshrc .zlogin .zlogout .kshrc .cshrc .tcshrc .login "
        ".config/fish/"
    ),
    START_PYTHON: (
        "sitecustomize.py usercustomize.py *.pth pyvenv.cfg .pythonrc* site-packages/ "
        "dist-packages/"
    ),
    "you import it": "*.pyc *.pyd *.so",
    "you start IPython": ".ipython/ ipython*_config.py ipython*_config.json",
    "you start Jupyter": ".jupyter/ jupyter*_config.py jupyter*_config.json jupyter*_config.d/",
    "you start a kernel": "kernel.json",
    "you restore a notebook's checkpoint": ".ipynb_checkpoints/",
    "you start R": ".Rprofile .Renviron",
    "you start a debugger": ".gdbinit .lldbinit .pdbrc",
    "you run pytest": "conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml",
    "you run tox": "tox.ini tox.toml",
    "you run nox": "noxfile.py",
    "you run doit": "dodo.py",
    "you run Fabric": "fabfile.py",
    "you run pylint": ".pylintrc pylintrc .pylintrc.toml pylintrc.toml",
    "you run mypy": "mypy.ini .mypy.ini",
    "you run flake8": ".flake8",
    "you run coverage": ".coveragerc",
    INSTALL: "setup.py setup.cfg pyproject.toml",
    "you run pip": "pip.conf pip.ini",
    "you run make": "Makefile GNUmakefile Makefile.am Makefile.in *.mk",
    "you run CMake": "CMakeLists.txt *.cmake CMakePresets.json CMakeUserPresets.json",
    "you run Meson": "meson.build",
    "you run SCons": "SConstruct SConscript",
    "you run Bazel": ".bazelrc *.bazel *.bzl",
    "you run just": "justfile .justfile *.just",
    "you run Task": "Taskfile.y*ml Taskfile.dist.y*ml",
    "you run Rake": "Rakefile *.rake",
    "you run Bundler": "Gemfile *.gemspec .bundle/",
    "you run Cargo": "build.rs .cargo/",
    "you run Gradle": "*.gradle *.gradle.kts gradlew gradlew.bat gradle/wrapper/",
    "you run Maven": "pom.xml .mvn/ mvnw mvnw.cmd",
    "you run Nix": "*.nix",
    "you run Vagrant": "Vagrantfile",
    "you run Docker": (
        "Dockerfile Dockerfile.* *.Dockerfile Containerfile compose*.y*ml "
        "docker-compose*.y*ml docker-bake.*"
    ),
    NPM: "package.json .npmrc .pnpmfile.* binding.gyp",
    "you run Yarn": ".yarnrc .yarnrc.yml .yarn/",
    "you run Node": "node_modules/ deno.json deno.jsonc bunfig.toml",
    "you run Grunt": "Gruntfile.*",
    "you run gulp": "gulpfile.*",
    "you push": (
        ".github/workflows/ .github/actions/ .gitlab-ci.y*ml .gitlab/ci/ .circleci/ "
        ".travis.y*ml .buildkite/ .woodpecker/ .woodpecker.y*ml .drone.y*ml .forgejo/ "
        ".gitea/ .cirrus.y*ml .readthedocs.y*ml Jenkinsfile appveyor.y*ml .appveyor.y*ml "
        "azure-pipelines*.y*ml bitbucket-pipelines.y*ml cloudbuild.y*ml .ci/"
    ),
}
"""Patterns of paths by the act that makes their files run; cases of letters make no difference."""

_TOOL_SETTINGS = re.compile(r"(?:([\w-]+)\.config|\.([\w-]+?)(?:rc|\.config))\.[cm]?[jt]sx?")
"""Name of a program in JavaScript whose settings are code, such as ``vite.config.ts``."""

_GIT_DIRECTORY = re.compile(r"(?:.*?/)?\.git(?:/(.*))?", re.IGNORECASE | re.DOTALL)

_GIT_DATA = re.compile(
    r"(?:objects|refs|logs)/.*|index|packed-refs|HEAD|\w+_HEAD|\w+MSG", re.DOTALL
)
"""What git never takes for instructions, in a git directory."""

_GIT_SETTING = re.compile(r"^\s*(?:hookspath|path)\s*=\s*(.*?)\s*$", re.MULTILINE | re.IGNORECASE)
_ATTRIBUTE_DRIVER = re.compile(rb"\s(?:filter|diff|merge)=")


def runs_when(path: str, workspace: str) -> str | None:
    """Return what a person does that runs a file, such as "you run make", or None.

    Args:
        path: The file, absolute or relative to the workspace; it need not exist.
        workspace: Absolute path of the workspace.
    """
    path = os.path.normpath(os.path.join(workspace, path))
    root = workspace if is_within(path, workspace) else os.path.splitdrive(path)[0] + os.sep
    relative = os.path.relpath(path, root).replace(os.sep, "/")
    parents = list(_parents(path, root))
    return (
        _of_git(path, relative, parents)
        or _of_kind(relative)
        or (START_PYTHON if any(map(_is_environment, parents)) else None)
        or _of_program(path)
        or _of_module(path, is_new=not os.path.lexists(path))
    )


def change_runs_when(path: str, workspace: str, old: bytes | None, new: bytes | None) -> str | None:
    """Return the same for a change of a file, None if it changes nothing that runs.

    Args:
        path: See ``runs_when``.
        workspace: See ``runs_when``.
        old: The content before; None if the file is new.
        new: The content now; None if the file was removed.
    """
    if new is None:
        return None
    when = runs_when(path, workspace)
    if when is None:
        return _of_module(os.path.join(workspace, path), is_new=old is None)
    name = os.path.basename(path).casefold()
    whole, part = _PARTS.get(name) or _PARTS.get(os.path.splitext(name)[1]) or ("", None)
    is_unchanged = part is not None and when == whole and _same_part(part, old, new)
    return None if is_unchanged else when


def _same_part(part: Callable[[bytes], object], old: bytes | None, new: bytes) -> bool:
    try:
        return part(old or b"") == part(new)
    except (ValueError, AttributeError, RecursionError):  # nobody knows how a broken file is read
        return False


def _build_system(text: bytes) -> object:
    import tomllib

    return tomllib.loads(text.decode()).get("build-system")


def _scripts(text: bytes) -> object:
    return json.loads(text).get("scripts") if text.strip() else None


def _drivers(text: bytes) -> object:
    return [line for line in text.splitlines() if _ATTRIBUTE_DRIVER.search(line)]


def _path_lines(text: bytes) -> object:
    """Return the lines of a path file; others of this suffix are weights of a model."""
    return None if b"\0" in text or text.startswith((b"PK", b"\x80")) else text or None


_PARTS: Mapping[str, tuple[str, Callable[[bytes], object]]] = {
    "pyproject.toml": (INSTALL, _build_system),
    "package.json": (NPM, _scripts),
    ".gitattributes": (GIT, _drivers),
    ".pth": (START_PYTHON, _path_lines),
}
"""The part that runs of files in which most is data, by name or suffix, with its act."""


def _parents(path: str, root: str) -> Iterator[str]:
    """Yield the folders of a path below a root, and the root, from the inside."""
    while is_within(path := os.path.dirname(path), root):
        yield path
        if path == root or path == os.path.dirname(path):
            return


def _of_git(path: str, relative: str, parents: list[str]) -> str | None:
    """Return ``GIT`` for what is in a git directory except its data, and what that includes."""
    if match := _GIT_DIRECTORY.fullmatch(relative):
        return None if _GIT_DATA.fullmatch(match[1] or "") else GIT
    for parent in parents:
        if all(os.path.exists(os.path.join(parent, name)) for name in ("HEAD", "objects", "refs")):
            below = os.path.relpath(path, parent).replace(os.sep, "/")
            return None if _GIT_DATA.fullmatch(below) else GIT
        config = os.path.join(parent, ".git", "config")
        if any(is_within(path, each) for each in _included(config)):
            return GIT
    return None


def _included(config: str) -> tuple[str, ...]:
    """Return the files that a repository's configuration includes, and its folder of hooks."""
    try:
        status = os.stat(config)
        return _included_by(config, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):  # a path with a NUL character has no status
        return ()


@lru_cache(maxsize=100)
def _included_by(config: str, modified: int, size: int) -> tuple[str, ...]:
    text = read_regular(config, MAX_CONFIG_BYTES).decode("utf-8", "replace")
    values = [value.strip('"') for value in _GIT_SETTING.findall(text)]
    folder = os.path.dirname(config)
    # Included files start at the configuration's folder, hooks at the working tree.
    starts = (folder, os.path.dirname(folder))
    expanded = map(os.path.expanduser, filter(None, values))
    return tuple(os.path.normpath(os.path.join(at, each)) for each in expanded for at in starts)


@cache
def _patterns() -> tuple[dict[str, str], list[tuple[re.Pattern[str], str]]]:
    """Return the acts by name of a file or folder, and those by an expression for paths."""
    names: dict[str, str] = {}
    expressions = []
    for when, patterns in KINDS.items():
        for pattern in patterns.casefold().split():
            if "*" in pattern or "/" in pattern[:-1]:
                expressions.append((re.compile(_expression(pattern), re.DOTALL), when))
            else:
                names[pattern] = when
    return names, expressions


def _expression(pattern: str) -> str:
    body = "[^/]*".join(map(re.escape, pattern.split("*")))
    return f"/{body}" if pattern.endswith("/") else rf"/{body}\Z"


def _of_kind(relative: str) -> str | None:
    path = relative.casefold()
    names, expressions = _patterns()
    *folders, name = path.split("/")
    for each in (*(f"{folder}/" for folder in folders), name):
        if when := names.get(each):
            return when
    for expression, when in expressions:
        if expression.search(f"/{path}"):
            return when
    if match := _TOOL_SETTINGS.fullmatch(os.path.basename(relative)):
        return f"you run {match[1] or match[2]}"
    return None


def _is_environment(folder: str) -> bool:
    marks = ("pyvenv.cfg", "conda-meta")
    return any(os.path.exists(os.path.join(folder, each)) for each in marks)


def _of_program(path: str) -> str | None:
    """Return the act for a program that is found by its name alone."""
    folder, name = os.path.split(path)
    entries = os.environ.get("PATH", "").split(os.pathsep)
    is_named = folder in map(os.path.normpath, filter(os.path.isabs, entries))
    is_data = os.path.isfile(path) and not os.access(path, os.X_OK)
    return f"you run {os.path.splitext(name)[0]}" if is_named and not is_data else None


def _of_module(path: str, *, is_new: bool) -> str | None:
    """Return the act for a new module that is imported instead of another of its name."""
    folder, name = os.path.split(path)
    module, suffix = os.path.splitext(name)
    if suffix != ".py" or not is_new:
        return None
    if module == "__init__":
        folder, module = os.path.split(folder)
    is_in_package = os.path.exists(os.path.join(folder, "__init__.py"))
    return f"you import {module}" if not is_in_package and _is_library(module) else None


def _is_library(module: str) -> bool:
    if module in sys.stdlib_module_names:
        return True
    endings = (os.path.join(os.sep, "__init__.py"), ".py", *EXTENSION_SUFFIXES)
    paths = (os.path.join(each, module + end) for each in LIBRARY_FOLDERS for end in endings)
    return any(map(os.path.exists, paths))
