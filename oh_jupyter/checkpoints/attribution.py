"""Attribution of changes by their cause: which are an agent's, and which are others'.

An operation that reports what it changed is believed. Otherwise the process that changed a path
decides, if the system names it, and else whether a step was running. What cannot be decided stays
on a rewind, and is listed.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from oh_jupyter.checkpoints.steps import Author, Step, Write
from oh_jupyter.checkpoints.tracker import Difference
from oh_jupyter.checkpoints.writers import Job, Lineage, opened_for_writing
from oh_jupyter.writes import PersonsWrite

CLOCK_SECONDS = 0.1
"""How much coarser than the clock the times of files may be."""

RECORD_SECONDS = 1.0
"""How long after a person's deletion or move in Jupyter its record may come."""


class Running(NamedTuple):
    """A step in progress.

    Attributes:
        step: The step.
        root: The process whose descendants do its work; 0 if it reports each change itself.
        is_persons: Whether a person does it.
        is_whole_turn: Whether it lasts as long as its turn.
        waits: Whether it has not started, because another one holds the shell or the kernel.
    """

    step: Step
    root: int = 0
    is_persons: bool = False
    is_whole_turn: bool = False
    waits: bool = False


class Cause(NamedTuple):
    """The author of a change, its step, and how that is known."""

    author: Author
    step: int = 0
    turn: int = 0
    reason: str = ""
    is_known: bool = False

    def write(self, difference: Difference, turn: int = 0) -> Write:
        """Return the change with its cause; ``turn`` is the turn of a change without one."""
        path, old, new, reason, _ = difference
        facts = self.author, self.step, self.turn or turn, self.reason or reason
        return Write(path, old, new, *facts, is_known=self.is_known)


def reported(difference: Difference, running: Running, paths: Collection[str]) -> Cause | None:
    """Return the cause of a change that a step reports, or of a directory made for it."""
    is_folder = (
        difference.old is None and difference.new is not None and difference.new.kind == "folder"
    )
    if difference.path in paths or (
        is_folder and any(path.startswith(f"{difference.path}/") for path in paths)
    ):
        return _of(running, is_known=True)
    return None


def cause(
    difference: Difference,
    running: Sequence[Running],
    jobs: Sequence[Job],
    agents: Mapping[int, int] | None = None,
) -> Cause:
    """Return the cause of a change that no step has reported.

    Args:
        difference: The change, with the processes that made it if they are known.
        running: The steps in progress, the latest last.
        jobs: Processes that earlier steps have started and that live on.
        agents: The turns of agents by the processes that these agents are.
    """
    steps = [each for each in running if each.root]
    pid, lineage = _last_writer(difference)
    if step := _step_of(lineage, steps):
        return _of(step)
    if job := next((job for job in jobs if job.pid == pid or job.pid in lineage), None):
        return Cause("agent", job.step, job.turn)
    for process, turn in (agents or {}).items():
        if process in lineage:
            return Cause("agent", turn=turn)
    if lineage:  # another process
        return Cause("others")
    if steps:
        return _of(steps[-1])
    if not jobs:
        return Cause("others")
    if not pid and (job := _writing(difference.path, jobs)):
        return Cause("agent", job.step, job.turn)
    last = jobs[-1]
    return Cause("unsure", last.step, last.turn, f"changed while {last.label!r} was running")


def cause_elsewhere(difference: Difference, jobs: Sequence[Job]) -> Cause | None:
    """Return the cause of a change by a job of another process of the user's, or None."""
    _, lineage = _last_writer(difference)
    for job in jobs:
        if job.pid in lineage and not job.is_replaced:
            return Cause("agent", job.step, job.turn)
    return None


def _last_writer(difference: Difference) -> tuple[int, Lineage]:
    pid = next(reversed(dict(difference.writers)), 0)
    return pid, difference.writers.get(pid, frozenset())


def _of(running: Running, *, is_known: bool = False) -> Cause:
    step = running.step
    if running.is_persons:
        return Cause("others", is_known=is_known)
    return Cause("agent", step.id, step.turn, is_known=is_known)


def _step_of(lineage: Lineage, steps: Sequence[Running]) -> Running | None:
    """Return the step whose process made a change; a command's before that of the kernel itself."""
    own = [each for each in reversed(steps) if each.root in lineage]
    commands = [each for each in own if each.root != os.getpid()]
    return next(iter(commands or own), None)


def _writing(path: str, jobs: Sequence[Job]) -> Job | None:
    """Return the process that has a file open for writing."""
    for job in jobs:
        if any(opened.endswith(f"/{path}") for opened in opened_for_writing(job.pid)):
            return job
    return None


def corrected(
    writes: Sequence[Write],
    steps: Mapping[int, Step],
    workspace: Path,
    persons: Sequence[PersonsWrite],
) -> list[Write]:
    """Attribute changes during a step to others, where these have reported them.

    Args:
        writes: Writes in the order of time.
        steps: Their steps by number.
        workspace: The workspace, a real path.
        persons: What people did, as their programs recorded it.
    """
    known = {
        (each.path, each.new): steps[each.step].owner
        for each in writes
        if each.is_known and each.step in steps
    }
    result = []
    for write in writes:
        step = steps.get(write.step)
        if write.author == "agent" and not write.is_known and step is not None:
            owner = known.get((write.path, write.new), step.owner)
            full = str(workspace / write.path)
            if owner != step.owner or any(_is_cause(each, write, step, full) for each in persons):
                write = write._replace(author="others")
        result.append(write)
    return result


def _is_cause(person: PersonsWrite, write: Write, step: Step, path: str) -> bool:
    """Return whether a person's recorded action made a change during a step."""
    ended = write.time if step.ended is None else step.ended
    if person.kind == "save":
        is_same = write.new is not None and person.contents == write.new.blob != ""
        return person.path == path and is_same and step.began <= person.time <= ended
    if not step.began <= person.time <= ended + RECORD_SECONDS:
        return False
    if write.new is None:
        return _is_at_or_below(path, person.path)
    return person.kind == "move" and _is_at_or_below(path, person.target)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
