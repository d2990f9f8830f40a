"""The git that is installed, on a repository of ours beside a workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from oh_jupyter.errors import CheckpointError

TIMEOUT_SECONDS = 120.0

_CONFIG = {
    "core.bare": "false",
    "core.excludesFile": os.devnull,
    "core.fsync": "none",  # what a power failure takes is a checkpoint, never a file
    "core.compression": "1",
    "core.quotePath": "false",
    "gc.autoDetach": "false",
}

_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}

# Bytes are kept as they are, whatever .gitattributes of the workspace says.
_ATTRIBUTES = "* -text !eol !filter !ident !working-tree-encoding\n"

# What tools make anew, and what is too large to be looked at on each turn.
_IGNORED = ("__pycache__/", ".ipynb_checkpoints/", ".venv/", "node_modules/")


class Git:
    """Commands of git on a bare repository and a work tree that knows nothing of it."""

    def __init__(self, directory: Path, work_tree: Path) -> None:
        program = shutil.which("git")
        if program is None:
            raise CheckpointError(
                "Checkpoints need git, and there is none on the PATH; install it (Debian: "
                "apt-get install git; conda: conda install git), or set checkpoints = 'off'."
            )
        self._program = program
        self.directory = directory
        self.work_tree = work_tree
        if not (directory / "HEAD").exists():
            self._create()

    def _create(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self("init", "--quiet", "--bare", "--template=", str(self.directory), in_repository=False)
        for name, value in _CONFIG.items():
            self("config", name, value)
        info = self.directory / "info"
        info.mkdir(exist_ok=True)
        (info / "attributes").write_text(_ATTRIBUTES)
        ignored = [*_IGNORED]
        if self.work_tree == Path.home().resolve():
            ignored.append("/.*")  # keys, caches, and the state of programs
        if self.directory.is_relative_to(self.work_tree):
            ignored.append(f"/{self.directory.relative_to(self.work_tree).as_posix()}/")
        (info / "exclude").write_text("".join(f"{line}\n" for line in ignored))

    def __call__(
        self,
        *arguments: str,
        data: bytes = b"",
        index: Path | None = None,
        options: Mapping[str, str] | None = None,
        in_repository: bool = True,
    ) -> bytes:
        """Standard output of a command; a CheckpointError with what git says if it fails."""
        done = self.run(
            *(
                part
                for name, value in (options or {}).items()
                for part in ("-c", f"{name}={value}")
            ),
            *arguments,
            data=data,
            index=index,
            in_repository=in_repository,
        )
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise CheckpointError(
                f"git {arguments[0]} failed in {str(self.work_tree)!r} ({done.returncode}): {said}"
            )
        return done.stdout

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        index: Path | None = None,
        in_repository: bool = True,
    ) -> subprocess.CompletedProcess[bytes]:
        """A command that ended, whatever its status; a CheckpointError if it did not end."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        environment |= _ENVIRONMENT
        if in_repository:
            environment |= {"GIT_DIR": str(self.directory), "GIT_WORK_TREE": str(self.work_tree)}
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        try:
            return subprocess.run(
                [self._program, *arguments],
                input=data,
                capture_output=True,
                cwd=self.work_tree,
                env=environment,
                timeout=TIMEOUT_SECONDS,
                # The person's Interrupt is not meant for it, and others may not read what it keeps.
                start_new_session=True,
                umask=0o077 if os.name == "posix" else -1,
            )
        except subprocess.TimeoutExpired as problem:
            raise CheckpointError(
                f"git did not end within {TIMEOUT_SECONDS:g} s in {str(self.work_tree)!r}; if the "
                "workspace is too large, leave folders out by a .gitignore there."
            ) from problem
        except OSError as problem:
            raise CheckpointError(
                f"git cannot be run in {str(self.work_tree)!r}: {problem.strerror}"
            ) from problem


def split(output: bytes) -> list[str]:
    """The entries of output that ends each with a zero byte."""
    return [os.fsdecode(entry) for entry in output.split(b"\0") if entry]


def joined(entries: Iterable[str]) -> bytes:
    """Entries as a command reads them from standard input with ``-z``."""
    return b"".join(os.fsencode(entry) + b"\0" for entry in entries)


def read_blobs(git: Git, ids: Iterable[str]) -> dict[str, bytes]:
    """The contents of blobs by their ids, read by one process."""
    wanted = list(ids)
    output = git("cat-file", "--batch", data="".join(f"{id}\n" for id in wanted).encode())
    found: dict[str, bytes] = {}
    start = 0
    for id in wanted:  # each is "<id> blob <size>", and then the bytes
        head_end = output.index(b"\n", start)
        size = int(output[start:head_end].split()[2])
        found[id] = output[head_end + 1 : head_end + 1 + size]
        start = head_end + size + 2
    return found
