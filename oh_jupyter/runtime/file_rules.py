"""Rules for the files that agents use: what they may change unasked, and what is asked about.

Also directory listings, and what is never replaced or sent.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.config import Settings
from oh_jupyter.containment import is_within
from oh_jupyter.descriptors import SEARCH, has_paths, path_of, path_to
from oh_jupyter.errors import DiskFullError, NotApprovedError, TransferError, is_full
from oh_jupyter.events import FileReadAction, FileWriteAction
from oh_jupyter.runs_when import runs_when
from oh_jupyter.runtime.boxed_shells import BoxedShells
from oh_jupyter.runtime.confinement import confinement_fault
from oh_jupyter.runtime.effects import Effects, effects, outside_of
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.risk import risks
from oh_jupyter.sandbox.profile import is_protected

if TYPE_CHECKING:
    from oh_jupyter.editor.files.path_guard import PathGuard


MAX_NAMED_FILES = 10
"""Maximum number of files that a question about a request names."""

MAX_JUDGED_ACTIONS = 2000
"""Maximum number of files that are looked at one by one; a person is asked about more."""

FileUse = FileReadAction | FileWriteAction
"""Use of one file, as the Action that does the same."""


class FileRules:
    """Rules of a runtime, from its settings and its sandboxes."""

    def __init__(
        self, workspace_dir: str, settings: Callable[[], Settings], boxes: BoxedShells
    ) -> None:
        self._workspace_dir = workspace_dir
        self._settings = settings
        self._boxes = boxes
        self._temporary: set[str] = set()

    @property
    def roots(self) -> list[str]:
        """The files and directories that agents may change."""
        settings = self._settings()
        named = [*settings.sandbox_writable, *settings.agent_directories]
        more = [os.path.join(self._workspace_dir, os.path.expanduser(each)) for each in named]
        return [self._workspace_dir, *sorted(self._temporary), *more]

    def note_new_temporary(self, known: Effects) -> None:
        """Add what an Action makes in the directory for temporary files to what agents may change.

        What is there already belongs to other programs.
        """
        top = os.path.realpath(tempfile.gettempdir())
        for real in (each for path in known.writes for each in known.real[path]):
            if real != top and is_within(real, top):
                entry = os.path.join(top, os.path.relpath(real, top).split(os.sep)[0])
                if not os.path.lexists(entry):
                    self._temporary.add(entry)

    def guard(self, known: Effects, within: str | None, *, asks: bool, confined: bool) -> PathGuard:
        """Return the files that an Action may use: the judged ones, and harmless ones.

        Args:
            known: The effects that were judged.
            within: Directory that its changes must not leave, if it is limited to one.
            asks: Whether a person is asked about agents' Actions.
            confined: Whether it may use only the workspace's files.
        """
        from oh_jupyter.editor.files.path_guard import PathGuard

        judged = {real for reals in known.real.values() for real in reals}
        roots = [self._workspace_dir] if confined else self.roots
        limits = (self._boxes.is_on and asks) or confined
        rules = self._boxes.visibility() if limits else None
        limit, workspace = None, os.path.realpath(self._workspace_dir)
        if within is not None:
            limit = os.path.realpath(os.path.join(self._workspace_dir, within))

        def may_read(real: str) -> bool:
            if real in judged:
                return True
            is_hidden = rules is not None and rules.hides(real)
            return not (is_hidden or (confined and any(outside_of([real], roots))))

        def may_write(real: str) -> bool:
            if limit is not None and not is_within(real, limit):
                return False
            if real in judged:
                return True
            is_risky = rules is not None and (rules.hides(real) or is_protected(real))
            is_risky = is_risky or (confined and runs_when(real, workspace) is not None)
            is_elsewhere = (asks or confined) and any(outside_of([real], roots))
            return not (is_risky or is_elsewhere)

        return PathGuard(may_read, may_write)

    def page_files(self, known: Effects, *, is_persons: bool) -> dict[str, Any] | None:
        """Return the limits of the files that pages load; None if no sandbox hides any.

        Args:
            known: The effects that were judged.
            is_persons: Whether a person opens the pages.
        """
        if not self._boxes.is_on:
            return None
        opened = sorted(real for path in known.reads for real in known.real[path])
        rules = asdict(self._boxes.visibility())
        return {"rules": rules, "opened": opened, "is_persons": is_persons}

    def check_confined(self, uses: Sequence[FileUse], cwd: str) -> None:
        """Raise NotApprovedError unless an agent that may not run code may use all of the files."""
        hides = self._boxes.visibility().hides
        for action in uses:
            known = effects(action, cwd)
            if fault := confinement_fault(action, known, self._workspace_dir, hides):
                raise NotApprovedError(fault)

    def questions(self, uses: Sequence[FileUse], cwd: str) -> list[Reason]:
        """Return the reasons to ask about files, after the paths that they are about."""
        if len(uses) > MAX_JUDGED_ACTIONS:
            return [Reason("uses_files", (str(len(uses)),))]
        asked: list[Reason] = []
        reasons: list[Reason] = []
        contained = self._boxes.contains(is_boxed=False)
        for action in uses:
            known = effects(action, cwd)
            self.note_new_temporary(known)
            own = self._boxes.questions(action, known)
            if not contained:
                own += risks(action, self._workspace_dir, effects=known, roots=self.roots)
            reasons += own
            if own:
                asked.append(use_of(action))
        rest = Reason("uses_such_files", (str(len(asked)),))
        more = [rest] if len(asked) > MAX_NAMED_FILES else []
        return [*asked[:MAX_NAMED_FILES], *more, *reasons]


def use_of(action: FileUse) -> Reason:
    """Return the reason that names a file."""
    is_read = isinstance(action, FileReadAction)
    return Reason("reads_file" if is_read else "writes_file", (action.path,))


def list_directory(path: str | None, workspace_dir: str) -> list[str]:
    """Return the names in a directory, directories first with a slash, ignoring case.

    Hidden entries are included, dangling links are not. As in the protocol, an unreadable directory
    is []. A relative path starts at the workspace, whatever the shell's directory.
    """
    directory = os.path.join(workspace_dir, path) if path else workspace_dir
    directories: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir():
                    directories.append(entry.name + "/")
                elif os.path.exists(entry.path):
                    files.append(entry.name)
    except (OSError, ValueError):
        return []
    return sorted(directories, key=str.lower) + sorted(files, key=str.lower)


class HeldDirectory:
    """A directory that stays open while a person is asked about it.

    Attributes:
        real: Its real path.
        contents: A path that leads to it whatever becomes of its name.
    """

    def __init__(self, path: str) -> None:
        """Open it; one that cannot be opened has no contents."""
        self._descriptor = -1
        self.real = self.contents = path
        with suppress(OSError, ValueError):  # a path with a NUL character
            self.real = self.contents = os.path.realpath(path)
            if has_paths():
                self._descriptor = os.open(path, SEARCH)
                self.real, self.contents = path_of(self._descriptor), str(path_to(self._descriptor))

    def close(self) -> None:
        """Close it; may be called repeatedly."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_MOUNTS = "/proc/self/mountinfo"
_VIRTUAL = {
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "fusectl",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
}


def kind_name(mode: int) -> str:
    """Return the kind of file that a mode describes, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a file")


def unwritable(message: str, error: OSError) -> TransferError:
    """Return the error for a failed write, with its own class if the disk is full."""
    cls = DiskFullError if is_full(error) else TransferError
    return cls(f"{message} cannot be written: {error.strerror or error}")


def check_replaceable(path: Path) -> None:
    """Raise TransferError unless a path is missing, or a writable regular file or link to one."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise TransferError(
            f"{path} is {kind_name(mode)}: only regular files are replaced; nothing was changed"
        )
    if not os.access(path, os.W_OK):
        raise TransferError(f"{path} may not be written; nothing was changed")


def virtual_devices() -> set[int]:
    """Return the device numbers of mounted virtual file systems such as ``/proc``."""
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            # "36 35 98:0 /root /mount/point options ... - type source options", see proc(5)
            split = [line.partition(" - ") for line in mounts]
    except OSError:  # exists on Linux only
        return set()
    numbers = (
        before.split()[2] for before, _, after in split if after.partition(" ")[0] in _VIRTUAL
    )
    return {os.makedev(*map(int, number.split(":"))) for number in numbers}
