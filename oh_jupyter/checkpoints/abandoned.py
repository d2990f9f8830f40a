"""Lock of a process on its turns, and the changes that it left behind when it died."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from oh_jupyter.checkpoints.attribution import CLOCK_SECONDS, Cause
from oh_jupyter.checkpoints.disk import is_now, look
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint
from oh_jupyter.checkpoints.snapshot import Snapshot, states
from oh_jupyter.checkpoints.steps import Step, Write
from oh_jupyter.checkpoints.tracker import known_change
from oh_jupyter.liveness import LifeLock, excluding
from oh_jupyter.locks import lock_path


class Owner:
    """The lock of a process; its modification time shows when the process was last alive."""

    def __init__(self, directory: Path) -> None:
        """Take a new lock, which is released with this object at the latest."""
        self.token = uuid.uuid4().hex
        self._life = LifeLock(_owner(directory, self.token))

    def close(self) -> None:
        """Release the lock."""
        self._life.close()

    def beat(self) -> None:
        """Record that the process is alive."""
        with contextlib.suppress(OSError):  # then less is proven if it dies
            os.utime(self._life.file.path)


def is_alive(directory: Path, token: str) -> bool:
    """Return whether the process of an owner still runs."""
    if not token or not _lock(directory, token).exists():
        return False
    with excluding(_owner(directory, token)) as is_free:
        return not is_free


def last_alive(directory: Path, token: str) -> float:
    """Return when an owner was last known to be alive, 0 if that is not known."""
    try:
        return _lock(directory, token).stat().st_mtime
    except OSError:
        return 0.0


def forget_owner(directory: Path, token: str) -> None:
    """Remove the lock of a dead owner."""
    if token:
        _lock(directory, token).unlink(missing_ok=True)


def _owner(directory: Path, token: str) -> Path:
    return directory / "owners" / token


def _lock(directory: Path, token: str) -> Path:
    return Path(lock_path(_owner(directory, token)))


UNSURE_AFTER_DEATH = "changed since by an unknown author; its turn has no known end"


def left_by(
    git: Git,
    turn: Checkpoint,
    begin: Snapshot,
    step: Step,
    writes: Iterable[Write],
    now: Snapshot,
    last_alive: float,
) -> Iterator[Write]:
    """Return the changes since the last look of a dead process, in a step of a turn.

    Args:
        git: The repository.
        turn: The turn.
        begin: The files at its begin.
        step: The step in which the process died.
        writes: What was recorded since the begin of the turn.
        now: The current files.
        last_alive: When the process was last known to be alive, in seconds since the epoch.
    """
    then, details = states(git, begin), begin.details
    for write in writes:
        if write.new is None or write.new.kind == "unknown":
            then.pop(write.path, None)
        else:
            then[write.path] = write.new
    present, details_now = states(git, now), now.details
    new_folders = {path for path, state in present.items() if state.kind == "folder"} - then.keys()
    for path in sorted(then.keys() | present.keys()):
        old, new = then.get(path), present.get(path)
        if old == new:
            continue
        for difference in known_change(path, old, new, details, details_now):
            proven = is_proven(git.work_tree, path, new_folders, step.began, last_alive)
            reason = difference.reason if proven else UNSURE_AFTER_DEATH
            author = Cause("agent" if proven else "unsure", step.id, turn.id, reason)
            yield author.write(difference)


def unapplied(git: Git, writes: Iterable[Write]) -> list[int]:
    """Return the numbers of a rewind's writes that it had not made when its process died.

    It had made those that it has confirmed, perhaps the next one, and what it had removed without
    putting something else there.
    """
    unconfirmed = [each for each in writes if not each.is_known]
    return [
        each.id
        for number, each in enumerate(unconfirmed)
        if is_now(git.work_tree, each.path, each.old)
        or (number > 0 and is_now(git.work_tree, each.path, each.new))
    ]


def is_proven(
    workspace: Path, path: str, new_folders: Collection[str], began: float, last_alive: float
) -> bool:
    """Return whether a change belongs to a step of a process that died during it.

    The change must not be from before the step, and must be from before the process was last known
    to be alive: the clock of files stands still for some milliseconds, so an equal time may be
    later. Others may have moved in directories that are new, with the agent's files.
    """
    parents = [parent.as_posix() for parent in PurePosixPath(path).parents]
    status = look(workspace, path)
    if status is None:  # its directory has the time of the deletion
        status = next(filter(None, (look(workspace, name) for name in parents)), None)
        status = status or os.stat(workspace)
    moved = [look(workspace, name) for name in parents if name in new_folders]
    times = [status.st_ctime, *(each.st_ctime for each in moved if each is not None)]
    return began - CLOCK_SECONDS <= status.st_ctime and max(times) < last_alive
