"""Questions about an agent's Actions in the cell that waits for the agent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import display

import oh_jupyter.kernel.display.html as html
from oh_jupyter.errors import AnswerError, ConfirmationError
from oh_jupyter.kernel.cells.main_thread import MainThreadCall, MainThreadWait
from oh_jupyter.kernel.notebook_file import is_from_vscode
from oh_jupyter.runtime.approvals import Scope
from oh_jupyter.runtime.confirmation import Decision

if TYPE_CHECKING:
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.confirmation import PendingAction
    from oh_jupyter.runtime.form import FormField, Value

MAX_PROMPT_CHARS = 2000
APPROVALS: dict[str, Scope] = {
    **dict.fromkeys(("y", "yes"), "once"),
    "session": "session",
    "always": "workspace",
}
"""Answers that approve, and what they cover."""
NO = ("", "n", "no")
PROMPT = "May {agent} do that? [y/N/session/always] "


_asking: list[CellQuestions] = []
"""Those that ask now, usually one."""


def is_asking() -> bool:
    """Return whether a cell that waits for an agent asks the person."""
    return any(questions.has_input for questions in _asking)


@contextmanager
def asked_in_cell(executor: ActionExecutor, submit: Callable[..., Any]) -> Iterator[None]:
    """Ask the person in the current cell while it waits on the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    questions = CellQuestions(executor, submit)
    _asking.append(questions)
    try:
        yield
    finally:
        _asking.remove(questions)
        questions.close()


class CellQuestions:
    """Asks by the frontend's input, one question at a time, unless decided elsewhere."""

    def __init__(self, executor: ActionExecutor, submit: Callable[..., Any]) -> None:
        """Start asking; ``submit`` starts a coroutine on the runtime's loop."""
        self._kernel: Any = getattr(get_ipython(), "kernel", None)
        self._executor = executor
        self._confirmations = executor.confirmations
        self._submit = submit
        self._asked: tuple[int, MainThreadCall[None]] | None = None
        self.has_input = True
        self._end = self._confirmations.on_question(self._update)

    def close(self) -> None:
        """Stop asking."""
        self._end()

    def _update(self) -> None:
        """Withdraw a question that was decided elsewhere, and ask the next one; on the loop."""
        waiting = self._confirmations.waiting
        if self._asked is not None:
            id, call = self._asked
            if id in waiting:
                return
            self._asked = None
            if not call.future.done():
                call.cancel()
        wait = MainThreadWait.current()
        if not waiting or wait is None or not self.has_input:
            return
        id, pending = next(iter(waiting.items()))
        self._asked = (id, wait.call(lambda: self._ask(id, pending)))

    def _ask(self, id: int, pending: PendingAction) -> None:
        """Ask the person, on the main thread. Other answers reject, with the text as the reason."""
        try:
            decision = self._answer(pending) if pending.is_question else self._approval(pending)
        except (EOFError, RuntimeError, NotImplementedError):
            self.has_input = False
            return

        async def decide() -> None:
            self._asked = None
            with suppress(ConfirmationError):  # already decided elsewhere
                await self._confirmations.resolve(id, decision)

        self._submit(decide())

    def _answer(self, pending: PendingAction) -> Decision:
        """Ask for each value of a form; an invalid one is asked again."""
        agent, message = pending.agent or "The agent", pending.message
        head = f"{message}\n({agent} asks; {pending.terms})\n"
        is_willing = self._input(f"{head}Do you answer? [Y/n] ").strip().lower() not in ("n", "no")
        values: dict[str, Value] = {}
        for field in pending.form if is_willing else ():
            value = self._value(field)
            if value is not None:
                values[field.name] = value
        return Decision(is_willing, "the notebook", values=values)

    def _value(self, field: FormField) -> Value | None:
        prompt = f"{field.title}{field.hint}: "
        for choice in field.choices:
            if choice.title != choice.value:
                print(f"  {choice.value}: {choice.title}")
        if field.description:
            print(field.description)
        while True:
            try:
                return field.parse(self._input(prompt))
            except AnswerError as error:
                prompt = f"{error} {field.title}: "

    def _approval(self, pending: PendingAction) -> Decision:
        diff = self._submit(self._executor.preview(pending.action)).result()
        question = "\n".join(filter(None, (pending.message, diff)))
        agent = pending.agent
        if self._has_short_prompts or len(question) > MAX_PROMPT_CHARS:
            self._show(pending.message, diff)  # the person must see what they approve
            question = f"{agent or 'The agent'} asks to do the above."
        prompt = PROMPT.format(agent=agent or "the agent")
        answer = self._input(f"{question}\n({pending.reason}; {pending.terms})\n{prompt}")
        text = answer.strip()
        scope = APPROVALS.get(text.lower())
        why = "" if text.lower() in NO or scope else text
        return Decision(scope is not None, "the notebook", why, scope or "once")

    @property
    def _has_short_prompts(self) -> bool:
        """Whether the frontend shows prompts in one line, as VS Code does."""
        return self._kernel is not None and is_from_vscode(self._kernel.get_parent("shell"))

    def _show(self, message: str, diff: str) -> None:
        """Show what an agent wants to do, as text or as HTML."""
        text = "\n".join(filter(None, (message, diff)))
        if self._kernel is None:
            print(text)
            return
        parts = [html.heading(message), html.diff_block(diff)]
        bundle = {"text/plain": text, "text/html": html.card(*parts)}
        display(bundle, raw=True)

    def _input(self, prompt: str) -> str:
        if self._kernel is not None:
            # Not the attribute of this kernel, which an agent's cell could have replaced.
            return str(type(self._kernel).raw_input(self._kernel, prompt))
        if not sys.stdin.isatty():
            raise EOFError
        return input(prompt)
