"""Git outside of a workspace: the installed program, and contents without a process for each."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import subprocess
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from oh_jupyter.config import state_home
from oh_jupyter.errors import CheckpointError
from oh_jupyter.installed import find_program
from oh_jupyter.state.location import ledger_folder

TIMEOUT_SECONDS = 120.0

LIST_SECONDS = 5.0
"""Timeout for git's first listing of a workspace."""

TEMPORARY_SUFFIX = ".oh-rewind"
"""Suffix of a rewind's temporary file beside the one that it replaces."""

_CONFIG = {
    "core.bare": "false",
    "core.excludesFile": os.devnull,
    "core.fsync": "none",  # a power failure costs a checkpoint, never a file
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

# Store bytes unchanged, whatever the workspace's .gitattributes says.
_ATTRIBUTES = "* -text !eol !filter !ident !working-tree-encoding\n"

IGNORED_FOLDERS = frozenset({"__pycache__", ".ipynb_checkpoints", ".venv", "node_modules"})
"""Folders that tools regenerate, or that are too large to compare in each step."""

_IGNORED = (
    *(f"{name}/" for name in sorted(IGNORED_FOLDERS)),
    "*.chat",  # of Jupyter AI, which writes in it during an agent's turn
    f"*{TEMPORARY_SUFFIX}",
)


class GitError(CheckpointError):
    """A failed git command."""


def too_large(message: str) -> CheckpointError:
    """Return the error for a workspace that is too large for checkpoints."""
    error = CheckpointError(message)
    error.is_lasting = True
    return error


class Git:
    """Commands of git on a bare repository and a separate work tree."""

    def __init__(self, directory: Path, work_tree: Path, own: Iterable[str] = ()) -> None:
        """Open or create the repository; ``own`` are other folders with the product's state."""
        program = find_program("git")
        if program is None:
            raise CheckpointError(
                "Checkpoints need git, and there is none on the PATH; install it (Debian: "
                "apt-get install git; conda: conda install git), or set checkpoints = 'off'."
            )
        if work_tree == Path(work_tree.anchor):
            raise too_large(
                f"No checkpoints are made of {str(work_tree)!r}, the root of the file system; "
                "start in a smaller folder."
            )
        self._program = program
        self.directory = directory
        self.work_tree = work_tree
        folders = [
            os.path.realpath(path)
            for path in (str(state_home()), str(ledger_folder()), str(directory.parent), *own)
        ]
        self._own_folders = [
            path
            for path in folders
            if Path(path).is_relative_to(work_tree) and path != str(work_tree)
        ]
        if not self._attributes.exists():
            self._create()
        self._write_ignored()

    @property
    def index(self) -> Path:
        """Git's cache of the files' status."""
        return self.directory / "index"

    def is_ours(self, path: str) -> bool:
        """Return whether an absolute path is the product's own state."""
        return any(path == own or path.startswith(own + os.sep) for own in self._own_folders)

    @property
    def _attributes(self) -> Path:
        return self.directory / "info" / "attributes"

    def _create(self) -> None:
        """Create the repository; attributes come last, so a killed creation is repeated."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self("init", "--quiet", "--bare", "--template=", str(self.directory), in_repository=False)
        for name, value in _CONFIG.items():
            self("config", name, value)
        self._attributes.parent.mkdir(exist_ok=True)
        fresh = self._attributes.with_suffix(".new")
        fresh.write_text(_ATTRIBUTES)
        fresh.replace(self._attributes)

    def _write_ignored(self) -> None:
        ignored = [*_IGNORED]
        home = Path.home().resolve()
        if home.is_relative_to(self.work_tree):
            ignored.append(f"{self._pattern(home)}.*")  # keys, caches, and the state of programs
        ignored += [self._pattern(Path(own)) for own in self._own_folders]
        text = "".join(f"{line}\n" for line in ignored)
        exclude = self.directory / "info" / "exclude"
        if not exclude.exists() or exclude.read_text() != text:
            exclude.write_text(text)

    def _pattern(self, folder: Path) -> str:
        """Return a folder of the work tree as a pattern of git."""
        name = folder.relative_to(self.work_tree).as_posix()
        return "/" if name == "." else f"/{_PATTERN.sub(_escaped, name)}/"

    def __call__(
        self,
        *arguments: str,
        data: bytes = b"",
        index: Path | None = None,
        options: Mapping[str, str] | None = None,
        in_repository: bool = True,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> bytes:
        """Return the standard output of a command; raise GitError if it fails."""
        result = self.run(
            *(
                part
                for name, value in (options or {}).items()
                for part in ("-c", f"{name}={value}")
            ),
            *arguments,
            data=data,
            index=index,
            in_repository=in_repository,
            timeout_seconds=timeout_seconds,
        )
        if result.returncode != 0:
            message = result.stderr.decode(errors="replace").strip()[-500:]
            if "No space left on device" in message:
                raise CheckpointError(
                    f"The disk of {str(self.directory)!r} is full, so no checkpoint of "
                    f"{str(self.work_tree)!r} can be made. Free space there, or set "
                    "XDG_STATE_HOME to another place."
                )
            raise GitError(
                f"git {arguments[0]} failed in {str(self.work_tree)!r} ({result.returncode}): "
                f"{message}"
            )
        return result.stdout

    def run(
        self,
        *arguments: str,
        data: bytes = b"",
        index: Path | None = None,
        in_repository: bool = True,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command, whatever its exit status; raise CheckpointError on timeout."""
        environment = _environment() | _ENVIRONMENT
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
                timeout=timeout_seconds,
                # The person's interrupt must not reach it, and others must not read its files.
                start_new_session=True,
                umask=0o077 if os.name == "posix" else -1,
            )
        except subprocess.TimeoutExpired as error:
            raise too_large(
                f"git did not finish within {timeout_seconds:g} s in {str(self.work_tree)!r}: it "
                "is too large for checkpoints. Exclude folders with a .gitignore there, or start "
                "in a smaller folder."
            ) from error
        except OSError as error:
            raise CheckpointError(
                f"git cannot be run in {str(self.work_tree)!r}: {error.strerror}"
            ) from error

    @contextlib.contextmanager
    def blobs(self, ids: Iterable[str]) -> Iterator[Iterator[tuple[str, int, IO[bytes]]]]:
        """Read blobs one after the other: id, size, and a stream with that many bytes."""
        wanted = list(ids)
        with tempfile.TemporaryFile(dir=self.directory) as requests:
            requests.write("".join(f"{id}\n" for id in wanted).encode())
            requests.seek(0)
            with subprocess.Popen(
                [self._program, f"--git-dir={self.directory}", "cat-file", "--batch"],
                stdin=requests,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**_environment(), **_ENVIRONMENT},
                start_new_session=True,
            ) as process:
                assert process.stdout is not None
                yield self._read_blobs(wanted, process.stdout)
                process.stdout.close()

    def _read_blobs(
        self, wanted: list[str], output: IO[bytes]
    ) -> Iterator[tuple[str, int, IO[bytes]]]:
        for id in wanted:  # each is "<id> blob <size>", and then the bytes
            head = output.readline().split()
            if len(head) != 3:
                raise GitError(
                    f"The checkpoints in {str(self.directory.parent)!r} are damaged: contents are "
                    "missing. Remove that folder to start again; the workspace is not affected."
                )
            yield id, int(head[2]), output
            output.read(1)


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


_PATTERN = re.compile(r"[\\*?\[\] ]")


def _escaped(match: re.Match[str]) -> str:
    return f"\\{match[0]}"


def split(output: bytes) -> list[str]:
    """Return the entries of zero-terminated output."""
    return [os.fsdecode(entry) for entry in output.split(b"\0") if entry]


def joined(entries: Iterable[str]) -> bytes:
    """Return entries zero-terminated, as commands read them with ``-z``."""
    return b"".join(os.fsencode(entry) + b"\0" for entry in entries)


def read_blobs(git: Git, ids: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of blobs by id, read by one process."""
    with git.blobs(dict.fromkeys(ids)) as blobs:
        return {id: output.read(size) for id, size, output in blobs}


_COMPRESSION = 1
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def store(directory: Path, contents: bytes) -> str:
    """Store contents in a repository, unless it has them, and return git's id of them.

    Raises:
        OSError: The repository is not writable, or the disk is full.
    """
    data = b"blob %d\0" % len(contents) + contents
    id = hashlib.sha1(data, usedforsecurity=False).hexdigest()
    folder = os.path.join(directory, "objects", id[:2])
    target = os.path.join(folder, id[2:])
    if os.path.exists(target):
        return id
    fresh = os.path.join(folder, f"tmp_obj_{uuid.uuid4().hex}")
    try:
        descriptor = os.open(fresh, _CREATE, 0o400)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(fresh, _CREATE, 0o400)
    try:
        with open(descriptor, "wb") as file:
            file.write(zlib.compress(data, _COMPRESSION))
        os.replace(fresh, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh)
        raise
    return id
