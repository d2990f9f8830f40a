"""Work that may be changing files now: steps in progress, and processes that steps started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from oh_jupyter.checkpoints.attribution import Cause, Running, cause
from oh_jupyter.checkpoints.tracker import Difference
from oh_jupyter.checkpoints.writers import Job, Writers, jobs, lineage
from oh_jupyter.process import guardian_pids

Descendants = Callable[[int, Iterable[int]], set[int]]
"""Returns the running processes that one has started, except some and theirs."""


class WorkInProgress:
    """The work of one process of the user's in a workspace.

    Attributes:
        agents: The turns of agents that change files themselves, by the processes that they are.
    """

    def __init__(self, descendants: Descendants) -> None:
        self.agents: dict[int, int] = {}
        self._descendants = descendants
        self._running: dict[int, Running] = {}
        self._earlier: dict[int, set[int]] = {}
        self._jobs: list[Job] = []
        self._ended_jobs: set[Job] = set()

    def __bool__(self) -> bool:
        """Whether anybody may be changing files."""
        return bool(self._running or self._jobs or self.agents)

    @property
    def steps(self) -> list[Running]:
        """The steps in progress, the latest last."""
        return list(self._running.values())

    @property
    def has_agents_step(self) -> bool:
        """Whether a step of an agent is in progress."""
        return any(each.step.turn for each in self._running.values())

    @property
    def jobs(self) -> frozenset[Job]:
        """The processes that live on after the step that started them."""
        return frozenset(self._jobs)

    def clear(self) -> None:
        """Forget all of it."""
        self._running.clear()
        self._jobs.clear()

    def find(self, id: int) -> Running | None:
        """Return a step in progress by its number."""
        return self._running.get(id)

    def begin(self, running: Running) -> None:
        """Add a step; what its root process has started before is not its work."""
        step = running.step
        if not running.is_persons:
            self._earlier[step.id] = self._started_by(running.root) if running.root else set()
        self._running[step.id] = running

    def start(self, id: int) -> None:
        """Let a step begin to change files that has waited."""
        self._running[id] = self._running[id]._replace(waits=False)

    def first_waiting(self, root: int) -> Running | None:
        """Return the earliest step of a process that waits."""
        waiting = (each for each in self._running.values() if each.waits and each.root == root)
        return next(waiting, None)

    def ending(self, id: int, root: int, shell: int) -> Running:
        """Note by which processes a step was done, before its last changes are recorded."""
        running = self._running[id]
        if root not in (0, running.root):
            running = self._running[id] = running._replace(root=root)
        if id in self._earlier:
            self._earlier[id] |= lineage(shell)
        self.remember_jobs(running)
        return running

    def stop(self, running: Running) -> None:
        """Remove a step whose processes are remembered, and remember what these have started."""
        if any(job.step == running.step.id for job in self._jobs):
            self.remember_jobs(running)
        self._running.pop(running.step.id, None)
        self._earlier.pop(running.step.id, None)

    def remember_jobs(self, running: Running) -> None:
        """Remember the processes that a step has started; some may end before the step does."""
        if running.root and not running.is_persons:
            step = running.step
            started = self._started_by(running.root) - self._earlier.get(step.id, set())
            running_jobs = jobs(started, step.id, step.turn, step.label)
            self._jobs += [job for job in running_jobs if job not in self._jobs]

    def end_turn(self, turn: int) -> None:
        """Forget the agents of a turn."""
        self.agents = {process: each for process, each in self.agents.items() if each != turn}

    def cause_of(self, difference: Difference, ended: Running | None) -> Cause:
        """Return the cause of a change that no step has reported, up to the end of a step."""
        steps = [each for each in self._running.values() if each is ended or not each.waits]
        return cause(difference, steps, self._jobs, self.agents)

    def forget_ended_jobs(self) -> None:
        """Forget the processes that had ended the last time: their last events come after that."""
        self._jobs = [job for job in self._jobs if job not in self._ended_jobs]
        self._ended_jobs = {job for job in self._jobs if not job.is_alive}

    def needs_look(self, changed: Mapping[str, Writers]) -> bool:
        """Return whether others change files beside a step, or late work does."""
        roots = {each.root for each in self._running.values() if each.root and not each.waits}
        if not roots:
            return bool((self._jobs or self.agents) and changed and not self._running)
        return any(
            lineage and not roots & lineage and pid != os.getpid()
            for writers in changed.values()
            for pid, lineage in writers.items()
        )

    def _started_by(self, root: int) -> set[int]:
        """Return the processes of a step's root; those of the kernel's own services are not."""
        return self._descendants(root, guardian_pids() if root == os.getpid() else ())
