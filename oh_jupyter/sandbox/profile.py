"""Profile of a sandbox as plain data: writable, read-only and hidden paths, network, environment.

Paths may be missing or lead through links; `mounts` resolves them when a box starts.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from oh_jupyter.containment import is_within, is_within_any
from oh_jupyter.sandbox.repositories import (
    control_files,
    git_directories,
    indexed_repositories,
    is_git_directory,
    placeholders,
)

Network = Literal["none", "proxy", "host"]
"""Network of a box: none, a proxy that decides about each host, or the machine's."""

MAX_SCANNED_DIRECTORIES = 2000
"""Maximum number of directories to search for repositories and environments."""
SCAN_DEPTH = 3

MAX_PROCESSES = 4096
"""Default of ``Profile.max_processes``."""

PROTECTED_DIRECTORIES = (".git", ".vscode", ".idea", ".claude", ".ipynb_checkpoints")
"""Directories of a workspace from which a person's programs run code, also if missing."""

PLACEHOLDERS: Mapping[str, str] = {
    ".mcp.json": '{"mcpServers": {}}\n',
    ".gitconfig": "",
    ".bashrc": "",
    # An empty file would keep bash from reading .profile.
    ".bash_profile": "[ ! -r ~/.profile ] || . ~/.profile\n",
    ".profile": "",
    ".zshenv": "",
    ".zprofile": "",
    ".zshrc": "",
    ".zlogin": "",
}
"""Files from which a person's programs run code, each with a content that has no effect."""

HOME_ONLY = frozenset(PLACEHOLDERS) - {".mcp.json"}
"""Files that have an effect only in a home directory."""

HOME_DIRECTORIES = (".config", ".ipython", ".jupyter", ".local", ".ssh")
"""Directories of a home from which a person's programs run code, also if missing."""

SHOWN = (
    *(".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv", "bin"),
    *(".local/share/fonts", ".fonts", ".terminfo", ".inputrc", ".hushlogin"),
    *(".pyenv", ".conda", "miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba"),
    *(".nvm", ".volta", ".bun", ".deno", ".local/share/pnpm", ".local/share/mise", ".asdf"),
    *(".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", "go/bin", "go/pkg", ".rbenv"),
    *(".gem", ".sdkman", ".m2/repository", ".gradle/caches", ".juliaup", ".julia", ".opam"),
    *(".ghcup", ".stack", ".cabal", ".nix-profile", "R", "nltk_data", ".keras"),
    *(".npm/_cacache", ".yarn", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/node"),
    *(".cache/go-build", ".cache/pre-commit", ".cache/pypoetry", ".cache/ms-playwright"),
    *(".cache/matplotlib", ".cache/fontconfig", ".cache/torch", ".cache/huggingface/hub"),
    *(".config/matplotlib", ".config/fontconfig"),
)
"""What a box sees of a home, read-only: what programs need to run. Anything else is invisible."""

SECRETS = (
    ".ssh", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube", ".docker",
    ".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials",
    ".config/git/credentials", ".gnupg", ".password-store", ".local/share/keyrings",
    ".local/share/kwalletd", ".cargo/credentials", ".cargo/credentials.toml",
    ".cache/huggingface/token", ".mozilla", ".config/chromium", ".config/google-chrome",
    ".codex", ".gemini", ".claude.json",
    ".claude/.credentials.json", ".config/goose", ".openhands", ".bash_history", ".zsh_history",
    ".python_history", ".local/share/jupyter/runtime", ".ipython/profile_default/security",
    ".jupyter/jupyter_server_config.json", ".jupyter/jupyter_server_config.py",
    ".ipython/profile_default/history.sqlite",
)  # fmt: skip
"""Credentials, tokens and histories, which stay invisible below what is shown of a home."""

SYSTEM_SECRETS = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/var/run/secrets", "/var/spool/cron",
    "/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet",
)  # fmt: skip
"""Secrets of the machine; the superuser in a box could read them."""

ALLOWED_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|TERM|COLORTERM|NO_COLOR|TZ|LANG|LANGUAGE|LC_\w+"
    r"|PAGER|GIT_PAGER|EDITOR|VISUAL|LESS|CI|HOSTNAME|MAKEFLAGS"
    r"|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV|EXE|SHLVL|PYTHON_EXE)|PYTHON(?!PATH)\w+|PYTHONPATH"
    r"|LD_LIBRARY_PATH|(?:OMP|MKL|OPENBLAS|NUMEXPR)_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    r"|JAVA_HOME|GOPATH|GOROOT|CARGO_HOME|RUSTUP_HOME|NVM_DIR|NODE_OPTIONS"
    r"|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
)
"""Names of the variables that a box inherits."""


@dataclass(frozen=True)
class Profile:
    """Limits of a box.

    Attributes:
        writable: Directories in which files may be changed.
        lifted: Writable paths that the operator names, which lift a protection.
        directories: Directories in writable ones that are read-only, also if missing.
        files: Files in writable ones that are read-only, each with the content of a placeholder
            that stands for a missing one.
        read_only: Paths in writable ones that are read-only if they exist.
        nested: Paths that were found deeper in writable ones, read-only as well.
        nested_files: The same as ``files``, deeper in writable ones.
        homes: Home directories; what is in them is invisible, apart from ``visible`` paths.
        hidden: More invisible paths.
        visible: Paths that stay visible, read-only, below hidden ones.
        network: See ``Network``.
        sockets: Paths of Unix sockets outside, by the paths at which the box sees them.
        max_processes: Maximum number of processes and threads of the box; see ``ProcessLimit``.
    """

    writable: tuple[str, ...]
    lifted: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    read_only: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    nested_files: tuple[tuple[str, str], ...] = ()
    homes: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    visible: tuple[str, ...] = ()
    network: Network = "none"
    sockets: tuple[tuple[str, str], ...] = ()
    max_processes: int = MAX_PROCESSES


def make_profile(
    workspace: str,
    *,
    homes: Iterable[str],
    own_folders: Iterable[str] = (),
    writable: Iterable[str] = (),
    hidden: Iterable[str] = (),
    visible: Iterable[str] = (),
    protected: Iterable[str] = (),
    network: Network = "none",
    max_processes: int = MAX_PROCESSES,
) -> Profile:
    """Return the profile for a workspace.

    Args:
        workspace: The writable directory.
        homes: Home directories: the shell user's, the kernel's, and those of others.
        own_folders: Our state and Jupyter's runtime directory, which are hidden.
        writable: More writable paths of the operator, relative to the workspace.
        hidden: More hidden paths of the operator, relative to the workspace.
        visible: More visible paths of the operator, relative to the workspace.
        protected: More paths that are read-only if they exist.
        network: See ``Profile``.
        max_processes: See ``Profile``.

    Returns:
        The profile, with absolute paths.
    """
    workspace = os.path.abspath(workspace)
    homes = [os.path.abspath(home) for home in homes]
    lifted = tuple(_absolute(path, workspace) for path in writable)
    roots = (workspace, *lifted)
    directories = [os.path.join(workspace, name) for name in PROTECTED_DIRECTORIES]
    git = directories.pop(0)
    read_only = list(protected)
    files = protected_files(workspace, homes)
    if is_git_directory(git):
        directories.append(os.path.join(git, "hooks"))
        read_only += control_files(git)
        files += placeholders(git)
    else:
        directories.append(git)
    directories += [
        os.path.join(home, name)
        for home in homes
        for name in HOME_DIRECTORIES
        if is_within_any(os.path.realpath(home), map(os.path.realpath, roots))
    ]
    nested: list[str] = []
    nested_files: list[tuple[str, str]] = []
    for root in roots:
        for directory in dict.fromkeys([*_interesting(root), *indexed_repositories(root)]):
            if os.path.basename(directory) == ".git" and is_git_directory(directory):
                for each in git_directories(directory):
                    nested += control_files(each)
                    nested_files += placeholders(each)
            else:
                nested.append(directory)
    return Profile(
        writable=roots,
        lifted=lifted,
        directories=tuple(directories),
        files=tuple(files),
        read_only=tuple(read_only),
        nested=tuple(nested),
        nested_files=tuple(nested_files),
        homes=tuple(homes),
        hidden=tuple(hidden_paths(workspace, homes, [*own_folders, *hidden])),
        visible=tuple(shown_paths(workspace, homes, visible)),
        network=network,
        max_processes=max_processes,
    )


def protected_files(workspace: str, homes: Iterable[str]) -> list[tuple[str, str]]:
    """Return the protected files, each with the content of its placeholder."""
    paths = [os.path.join(workspace, ".mcp.json")]
    paths += [os.path.join(home, name) for home in homes for name in sorted(HOME_ONLY)]
    return [(path, PLACEHOLDERS[os.path.basename(path)]) for path in paths]


def hidden_paths(workspace: str, homes: Iterable[str], more: Iterable[str]) -> list[str]:
    """Return the hidden paths; ``more`` are relative to the workspace."""
    return [
        *(os.path.join(home, name) for home in homes for name in SECRETS),
        *SYSTEM_SECRETS,
        *(_absolute(path, workspace) for path in more),
    ]


def shown_paths(workspace: str, homes: Sequence[str], more: Iterable[str]) -> list[str]:
    """Return what a box sees of the homes, read-only; see ``make_profile``."""
    paths = [sys.prefix, sys.base_prefix, *(_absolute(path, workspace) for path in more)]
    paths += [os.environ[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if os.environ.get(name)]
    paths += [os.path.join(home, name) for home in homes for name in SHOWN]
    named = (*os.environ.get("PATH", "").split(os.pathsep), *sys.path, *_editable_sources())
    for path in named:
        paths += _program_directories(path, homes)
    return list(dict.fromkeys(path for path in paths if os.path.exists(path)))


@cache
def _editable_sources() -> tuple[str, ...]:
    """Return the directories of packages that are installed in the kernel's Python as links."""
    sources = []
    for packages in sys.path:
        for record in Path(packages).glob("*.dist-info/direct_url.json"):
            with suppress(OSError, ValueError, KeyError):
                origin = json.loads(record.read_bytes())
                if origin["dir_info"]["editable"]:
                    sources.append(unquote(urlsplit(origin["url"]).path))
    return tuple(sources)


def _program_directories(path: str, homes: Sequence[str]) -> list[str]:
    """Return a directory of programs in a home, with the prefix that it belongs to."""
    home = next((each for each in homes if path != each and is_within(path, each)), None)
    if home is None or not os.path.isabs(path):
        return []
    prefix = os.path.dirname(os.path.normpath(path))
    name = os.path.relpath(prefix, home)
    is_own = name != "." and not (name.startswith(".") and os.sep not in name)
    return [path, prefix] if os.path.basename(path) == "bin" and is_own else [path]


def is_protected(path: str) -> bool:
    """Return whether a person's programs run code from a path of a workspace."""
    parts = path.split(os.sep)
    if parts[-1] in PLACEHOLDERS or not set(PROTECTED_DIRECTORIES).isdisjoint(parts):
        return True
    parents = (os.sep.join(parts[:length]) for length in range(2, len(parts)))
    return any(os.path.exists(os.path.join(parent, "pyvenv.cfg")) for parent in parents)


def allowed_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a box inherits."""
    return {name: value for name, value in env.items() if ALLOWED_VARIABLES.fullmatch(name)}


def _absolute(path: str, workspace: str) -> str:
    return os.path.abspath(os.path.join(workspace, os.path.expanduser(path)))


def _interesting(root: str) -> Iterator[str]:
    """Yield git directories, Python environments and protected directories below a root."""
    pending = [(root, 0)]
    scanned = 0
    while pending and scanned < MAX_SCANNED_DIRECTORIES:
        directory, depth = pending.pop(0)
        scanned += 1
        try:
            with os.scandir(directory) as entries:
                names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        except OSError:
            continue
        if ("pyvenv.cfg", False) in names or ("conda-meta", True) in names:
            yield directory
            continue
        for name, is_directory in names:
            path = os.path.join(directory, name)
            if name in PROTECTED_DIRECTORIES or name == ".mcp.json":
                yield path
            elif (
                is_directory and depth < SCAN_DEPTH and name not in ("node_modules", "__pycache__")
            ):
                pending.append((path, depth + 1))
