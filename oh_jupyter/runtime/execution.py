"""Facts about the Action that is being executed, for everything that runs on its behalf."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oh_jupyter.events import EventSource
from oh_jupyter.events.action import progress
from oh_jupyter.runtime.effects import Effects
from oh_jupyter.runtime.progress import ActionProgress

if TYPE_CHECKING:
    from oh_jupyter.editor.files.path_guard import PathGuard


@dataclass(frozen=True)
class Execution:
    """The person or agent that executes an Action, and the place.

    Attributes:
        principal: The actual principal.
        is_boxed: Whether a command belongs in a sandbox.
        is_agents: Whether it is an agent's Action, also if a person approved it.
        cwd: Directory in which its relative paths begin, "" for the shell's current one. It is
            decided about these paths, so they stay the same if the shell changes its directory
            while the Action waits.
        guard: The files that the editor may use for it; None for all.
        known: Its effects, about which it was decided.
    """

    principal: EventSource = "agent"
    is_boxed: bool = False
    is_agents: bool = True
    cwd: str = ""
    guard: PathGuard | None = None
    known: Effects = Effects()  # noqa: RUF009 (it is frozen)


current_execution: ContextVar[Execution] = ContextVar("current_execution", default=Execution())  # noqa: B039


@contextmanager
def executing(execution: Execution, state: ActionProgress) -> Iterator[None]:
    """Make an execution and the progress of its Action the current ones."""
    execution_token = current_execution.set(execution)
    progress_token = progress.set(state)
    try:
        yield
    finally:
        current_execution.reset(execution_token)
        progress.reset(progress_token)
