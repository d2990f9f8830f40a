"""Questions about an agent's Actions, asked in the cell that waits for the agent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython

from oh_jupyter.errors import ConfirmationError
from oh_jupyter.kernel.cells.main_thread import MainThreadCall, MainThreadWait
from oh_jupyter.runtime.confirmation import Decision

if TYPE_CHECKING:
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.confirmation import PendingAction

MAX_PROMPT_CHARS = 2000
YES = ("y", "yes")
NO = ("", "n", "no")


@contextmanager
def asked_in_cell(executor: ActionExecutor, submit: Callable[..., Any]) -> Iterator[None]:
    """Ask the person in the cell that runs, while it waits on the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    questions = CellQuestions(executor, submit)
    try:
        yield
    finally:
        questions.close()


class CellQuestions:
    """Asks by the frontend's input, one question at a time, unless it is decided elsewhere."""

    def __init__(self, executor: ActionExecutor, submit: Callable[..., Any]) -> None:
        """Ask from now on; ``submit`` starts a coroutine on the runtime's loop."""
        self._kernel: Any = getattr(get_ipython(), "kernel", None)
        self._executor = executor
        self._confirmations = executor.confirmations
        self._submit = submit
        self._asked: tuple[int, MainThreadCall[None]] | None = None
        self._refused = False
        self._end = self._confirmations.on_question(self._look)

    def close(self) -> None:
        """Ask no more."""
        self._end()

    def _look(self) -> None:
        """Take back the question that is decided, and ask the next one; on the loop."""
        waiting = self._confirmations.waiting
        if self._asked is not None:
            id, call = self._asked
            if id in waiting:
                return
            self._asked = None
            if not call.future.done():
                call.cancel()
        wait = MainThreadWait.current()
        if not waiting or wait is None or self._refused:
            return
        id, pending = next(iter(waiting.items()))
        self._asked = (id, wait.call(lambda: self._ask(id, pending)))

    def _ask(self, id: int, pending: PendingAction) -> None:
        """Ask the person; on the main thread. What is neither yes nor no is the reason why not."""
        diff = self._submit(self._executor.preview(pending.action)).result()
        what = "\n".join(filter(None, (pending.action.message, diff)))
        if len(what) > MAX_PROMPT_CHARS:
            print(what)  # nobody is to approve what they have not seen
            what = "The agent asks for what stands above."
        try:
            answer = self._input(f"{what}\n({pending.reason})\nMay the agent do that? [y/N] ")
        except (EOFError, RuntimeError, NotImplementedError):
            self._refused = True
            return

        said = answer.strip()
        why = "" if said.lower() in NO else said
        decision = Decision(said.lower() in YES, "the notebook", why)

        async def decide() -> None:
            self._asked = None
            with suppress(ConfirmationError):  # it was decided elsewhere meanwhile
                self._confirmations.resolve(id, decision)

        self._submit(decide())

    def _input(self, prompt: str) -> str:
        if self._kernel is not None:
            return str(self._kernel.raw_input(prompt))
        if not sys.stdin.isatty():
            raise EOFError
        return input(prompt)
