"""The files of a workspace as last seen, and what has changed since."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NamedTuple

from oh_jupyter.checkpoints.disk import UNKNOWN, State, look
from oh_jupyter.checkpoints.git import IGNORED_FOLDERS, Git, joined, split, store
from oh_jupyter.checkpoints.process_log import ProcessLog
from oh_jupyter.checkpoints.snapshot import Details, Limits, Snapshot, changes, states
from oh_jupyter.checkpoints.watch import Watch
from oh_jupyter.checkpoints.writers import Lineage, Writers, descendants, lineage
from oh_jupyter.descriptors import read_real

MAX_SEPARATE_FILES = 500
"""Number of changed paths above which git lists the whole workspace, which is faster."""

MAX_IGNORED = 10_000
"""Number of ignored paths that are remembered."""

BY_PROCESS = "by the process that made them"
BY_RUNNING_PROCESS = "by the process that made them, if it has not ended at once"
BY_STEP = "by the step that ran (this system does not name the process of a change)"
COMPARED = "by the step that ran; all files are compared before and after it ({})"
"""Descriptions of how changes are attributed."""


class Difference(NamedTuple):
    """A change of a path since the last look.

    Attributes:
        path: Relative to the workspace.
        old: Its state then.
        new: Its state now.
        reason: Why the old or the new contents are not stored, "" if they are.
        writers: The processes that changed it, the last one last.
    """

    path: str
    old: State | None
    new: State | None
    reason: str = ""
    writers: Writers = MappingProxyType({})


Take = Callable[[str], Snapshot]
"""Saves the current files, given a tree whose files stay known even if they are now ignored."""


class Tracker:
    """The changes of a workspace between two looks.

    With a watch, a look costs what changed. Without one, git compares all files.

    Attributes:
        description: The way in which changes are attributed, for people; "" before the first look.
        removed: Paths that agents have removed, whose next change counts even if it left nothing.
    """

    def __init__(self, root: Path, limits: Limits, *, is_watched: bool) -> None:
        self.description = ""
        self.removed: set[str] = set()
        self._names_writers = False
        self._root = root
        self._limits = limits
        self._is_wanted = is_watched
        self._watch: Watch | None = None
        self._processes: ProcessLog | None = None
        self._inode = 0
        self._lock = threading.RLock()
        self._snapshot: Snapshot | None = None
        self._is_current = False
        self._states: dict[str, State] = {}
        self._outside = Details()
        self._ignored: set[str] = set()
        self._changed: dict[str, dict[int, Lineage]] = {}
        self._folders: set[str] = set()
        self._lineages: dict[int, Lineage] = {}
        self._must_list = False
        self._is_ours: Callable[[str], bool] = lambda path: False

    @property
    def has_begun(self) -> bool:
        """Whether there is a first look, with which later ones compare."""
        return self._snapshot is not None

    @property
    def fd(self) -> int | None:
        """The descriptor that is readable when files change; None without a watch."""
        return None if self._watch is None else self._events.fileno()

    @property
    def names_writers(self) -> bool:
        """Whether the processes that change files are looked up."""
        return self._names_writers

    @names_writers.setter
    def names_writers(self, value: bool) -> None:
        with self._lock:
            if value != self._names_writers and self._processes is not None:
                self._processes.switch(value)
            self._names_writers = value

    def close(self) -> None:
        """Stop watching; the next look is a first one."""
        with self._lock:
            self._stop_watch()
            self._snapshot = None

    def begin(self, git: Git, take: Take) -> None:
        """Look for the first time; otherwise do nothing."""
        with self._lock:
            if self._snapshot is None:
                self._is_ours = git.is_ours
                self._snapshot = take("")
                if self._is_wanted:
                    self._start_watch(git, take)

    def descendants(self, pid: int, without: Iterable[int] = ()) -> set[int]:
        """Return the running processes that one has started, except some and theirs."""
        with self._lock:
            return descendants(pid, without, self._processes)

    def save(self, git: Git, take: Take) -> tuple[Snapshot, list[Difference]]:
        """Return the current files as a snapshot, and the changes since the last look."""
        with self._lock:
            if self._snapshot is None:
                return take(""), []
            if self._watch is None:
                before, self._snapshot = self._snapshot, take("")
                return self._snapshot, list(_differences(git, before, self._snapshot))
            differences = self._look(git, take)
            if not self._is_current:
                snapshot = take("")
                if not self._is_unchanged():  # the next look compares with these
                    return snapshot, differences
                self._snapshot, self._is_current = snapshot, True
            return self._snapshot, differences

    def _is_unchanged(self) -> bool:
        self._read_events()
        return not (self._changed or self._must_list) and self._is_same_root()

    def collect(self) -> Mapping[str, Writers] | None:
        """Read the new events; return the paths that they name, with their writers.

        None while another thread looks.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._read_events()
        finally:
            self._lock.release()

    def _read_events(self) -> dict[str, Writers]:
        """Note what has changed, and return the paths of the new events."""
        paths: dict[str, Writers] = {}
        events = [] if self._watch is None else list(self._watch.read())
        if self._processes is not None:
            self._processes.read()  # after the events, so that it has their processes
        for event in events:
            parts = event.path.split("/")
            if not event.path:
                self._must_list = True
            elif ".git" in parts or parts[-1] == ".gitignore":
                self._must_list |= event.is_new_name or parts[-1] == ".gitignore"
            if not event.path or ".git" in parts or self._is_skipped(event.path):
                continue
            writers = paths[event.path] = self._changed.setdefault(event.path, {})
            writers.pop(event.pid, None)
            if event.pid:
                writers[event.pid] = self._lineage(event.pid) if self.names_writers else frozenset()
            if event.is_folder and event.is_new_name:
                self._folders.add(event.path)
        if self._processes is not None:
            self._processes.forget_ended()
        return paths

    def look(self, git: Git, take: Take) -> list[Difference]:
        """Return the changes since the last look.

        Args:
            git: The repository, which another caller may use meanwhile.
            take: Saves all files, if that is necessary.

        Raises:
            CheckpointError: The changes are too large, or git fails.
        """
        with self._lock:
            return self._look(git, take)

    def _look(self, git: Git, take: Take) -> list[Difference]:
        assert self._snapshot is not None, "begin was not called"
        if self._watch is None:
            before, self._snapshot = self._snapshot, take(self._snapshot.tree)
            return list(_differences(git, before, self._snapshot))
        if self._is_unchanged():
            return []
        changed, folders = self._changed, self._folders
        self._changed, self._folders, self._lineages = {}, set(), {}
        self._is_current = False
        try:
            differences = self._compared(git, changed, folders)
            if differences is None:
                differences = self._listed(git, take)
        except BaseException:  # such as on a full disk; what changed is no longer known by events
            self._must_list = True
            raise
        return self._with_writers(git, differences, changed)

    def _with_writers(
        self, git: Git, differences: Iterable[Difference], changed: Mapping[str, Writers]
    ) -> list[Difference]:
        """Name the writers of changes, also those who wrote while the contents were read."""
        later = self._read_events()
        named = []
        for each in differences:
            writers = _writers_of(each.path, changed)
            if each.path in later:
                now, _ = self._read(git, each.path, look(self._root, each.path))
                if now == each.new:  # so what was read may be theirs
                    writers = {**writers, **later[each.path]}
                    if each.path not in self._folders:
                        self._changed.pop(each.path, None)
            named.append(each._replace(writers=writers))
        return named

    def _start_watch(self, git: Git, take: Take) -> None:
        assert self._snapshot is not None
        try:
            watch = Watch(str(self._root))
            for folder in ("", *self._snapshot.details.folders):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    watch.add(folder)
        except OSError as error:
            self._give_up(error)
            return
        self._stop_watch()
        self._watch, self._inode = watch, os.stat(self._root).st_ino
        self._follow(watch)
        self._snapshot = take("")  # what changed before the watch began
        self._is_current = True
        self._remember(git, self._snapshot)

    def _follow(self, watch: Watch) -> None:
        """Name the processes of a watch, and wait for events of both at one descriptor."""
        self._events = select.epoll()
        self._events.register(watch.fd, select.EPOLLIN)
        if not watch.names_processes:
            self.description = BY_STEP
            return
        try:
            self._processes = ProcessLog()
        except OSError:
            self.description = BY_RUNNING_PROCESS
            return
        self._processes.switch(self._names_writers)
        for fd in self._processes.fds:
            self._events.register(fd, select.EPOLLIN)
        self.description = BY_PROCESS

    def _stop_watch(self) -> None:
        if self._watch is not None:
            self._events.close()
            self._watch.close()
            self._watch = None
        if self._processes is not None:
            self._processes.close()
            self._processes = None

    def _give_up(self, error: OSError) -> None:
        """Compare all files from now on."""
        reason = "the limit of watches is reached" if error.errno in _LIMITS else error.strerror
        self.description = COMPARED.format(reason)
        self._stop_watch()

    def _remember(self, git: Git, snapshot: Snapshot) -> None:
        self._states = states(git, snapshot)
        self._outside = Details(outside=dict(snapshot.details.outside))
        self._ignored = set()

    def _is_same_root(self) -> bool:
        try:
            return os.stat(self._root).st_ino == self._inode
        except OSError:
            return False

    def _listed(self, git: Git, take: Take) -> list[Difference]:
        """Compare all files with those remembered, and watch all directories."""
        old, outside = self._states, self._outside
        self._must_list = False
        self.close()
        self._snapshot = take("")
        self._start_watch(git, take)
        if self._watch is None:
            self._remember(git, self._snapshot)
        for path, state in old.items():  # what was stored stays stored if it is ignored now
            if path not in self._states and state.kind != "folder":
                now, _ = self._read(git, path, look(self._root, path))
                if now is not None:
                    self._states[path] = now
                    self._outside.outside.pop(path, None)
        new = self._states
        return [
            difference
            for path in sorted(old.keys() | new.keys())
            if old.get(path) != new.get(path)
            for difference in known_change(
                path, old.get(path), new.get(path), outside, self._outside
            )
        ]

    def _affected(self, changed: Iterable[str], folders: set[str]) -> set[str]:
        """Return the changed paths, with those in directories that appeared or disappeared."""
        paths: set[str] = set()
        for path in changed:
            paths.add(path)
            old = self._states.get(path)
            if path in folders or (old is not None and old.kind == "folder"):
                status = look(self._root, path)
                is_folder = status is not None and stat.S_ISDIR(status.st_mode)
                if path in folders or not is_folder:
                    below = f"{path}/"
                    paths.update(name for name in self._states if name.startswith(below))
                    paths.update(self._walk(path))
            if len(paths) > MAX_SEPARATE_FILES:
                break
        return paths

    def _walk(self, folder: str) -> Iterator[str]:
        """Watch a directory that appeared, and return what is in it."""
        pending = [folder]
        while pending:
            folder = pending.pop()
            status = look(self._root, folder)
            if status is None or not stat.S_ISDIR(status.st_mode):
                continue
            try:
                if self._watch is not None:
                    self._watch.add(folder)
                names = os.listdir(self._root / folder)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._must_list = error.errno in _LIMITS or self._must_list
                continue
            for name in names:
                path = f"{folder}/{name}"
                self._must_list |= name in (".git", ".gitignore")
                if name != ".git" and not self._is_skipped(path):
                    yield path
                    pending.append(path)

    def _is_skipped(self, path: str) -> bool:
        return (
            not IGNORED_FOLDERS.isdisjoint(path.split("/"))
            or path in self._ignored
            or self._is_ours(str(self._root / path))
        )

    def _compared(
        self, git: Git, changed: Iterable[str], folders: set[str]
    ) -> list[Difference] | None:
        """Compare the changed paths; None if all have to be listed."""
        if self._must_list or not self._is_same_root():
            return None
        paths = self._affected(changed, folders)
        if len(paths) > MAX_SEPARATE_FILES:
            return None
        statuses = {path: look(self._root, path) for path in paths}
        unknown = [
            path
            for path, status in statuses.items()
            if status is not None and path not in self._states and _is_storable(status)
        ]
        ignored = self._ignored_of(git, unknown)
        if self._must_list or sum(_size(each) for each in statuses.values()) > (
            self._limits.total_bytes
        ):
            return None
        differences: list[Difference] = []
        for path in sorted(statuses):
            if path not in ignored:
                differences += self._compare(git, path, statuses[path])
        return differences

    def _ignored_of(self, git: Git, paths: Collection[str]) -> set[str]:
        """Return the paths that .gitignore excludes."""
        if not paths:
            return set()
        result = git.run("check-ignore", "-z", "--stdin", "--no-index", data=joined(paths))
        if result.returncode not in (0, 1):  # such as a path within a submodule
            self._must_list = True
            return set()
        ignored = set(split(result.stdout))
        for path in ignored:
            if self._watch is not None:
                self._watch.forget(path)
        if len(self._ignored) + len(ignored) > MAX_IGNORED:
            self._ignored.clear()
        self._ignored |= ignored
        return ignored

    def _compare(self, git: Git, path: str, status: os.stat_result | None) -> Iterator[Difference]:
        old, reason = self._states.get(path), ""
        if old is None and (covering := self._outside.covering(path)):
            old, reason = UNKNOWN, self._outside.outside[covering]
        new, obstacle = self._read(git, path, status)
        for name in (path, f"{path}/"):
            self._outside.outside.pop(name, None)
        if obstacle:
            self._outside.outside[path] = obstacle
        if new is None:
            self._states.pop(path, None)
        else:
            self._states[path] = new
        if new is None and obstacle:
            new = UNKNOWN
        is_storable = old not in (None, UNKNOWN) or new not in (None, UNKNOWN)
        is_change = old != new and is_storable
        if is_change or (old is new is None and path in self.removed):
            yield Difference(path, old, new, reason or obstacle)

    def _read(self, git: Git, path: str, status: os.stat_result | None) -> tuple[State | None, str]:
        """Return the current state of a path and store its contents, or why it is not stored."""
        if status is None:
            return None, ""
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return State("folder", mode), ""
        if not _is_storable(status):
            return None, "neither a file nor a link"
        if status.st_size > self._limits.file_bytes:
            return None, f"larger than {self._limits.file_bytes / 2**20:g} MB"
        try:
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(self._root / path))
                return State("link", 0, store(git.directory, target)), ""
            contents = read_real(self._root / path)
        except PermissionError:
            return None, "not readable"
        except OSError:  # it has just disappeared; an event says so
            return None, ""
        return State("file", mode, store(git.directory, contents)), ""

    def _lineage(self, pid: int) -> Lineage:
        known = self._lineages.get(pid)
        if not known:
            known = self._lineages[pid] = lineage(pid, self._processes)
        return known


_LIMITS = (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def _is_storable(status: os.stat_result) -> bool:
    kinds = stat.S_ISREG, stat.S_ISLNK, stat.S_ISDIR
    return any(is_kind(status.st_mode) for is_kind in kinds)


def _size(status: os.stat_result | None) -> int:
    return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0


def _differences(git: Git, before: Snapshot, after: Snapshot) -> Iterator[Difference]:
    """Compare two snapshots."""
    then, now = before.details, after.details
    for path, (old, new) in changes(git, before, after).items():
        yield from known_change(path, old, new, then, now)


def known_change(
    path: str, old: State | None, new: State | None, before: Details, after: Details
) -> Iterator[Difference]:
    """Return a change, if any; a file that exists without being stored is unknown, not absent."""
    if old == new:
        return
    reason = ""
    if old is None and (covering := before.covering(path)):
        old, reason = UNKNOWN, before.outside[covering]
    if new is None and (covering := after.covering(path)):
        new, reason = UNKNOWN, after.outside[covering]
    if old != new:
        yield Difference(path, old, new, reason)


def _writers_of(path: str, changed: Mapping[str, Writers]) -> Writers:
    """Return the writers of a path, or of the directory with which it appeared."""
    for name in (path, *(parent.as_posix() for parent in PurePosixPath(path).parents)):
        if name in changed:
            return changed[name]
    return {}
