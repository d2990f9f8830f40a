"""Questions about agents' Actions: in the cell that waits for the agent, or below VS Code's last.

JupyterLab's panel asks while no cell waits for the agent. VS Code has no panel, but shows outputs
that arrive after the end of their cell.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from IPython.core.getipython import get_ipython
from IPython.display import display

import oh_jupyter.kernel.display.html as html
from oh_jupyter.errors import AnswerError, ConfirmationError
from oh_jupyter.kernel.cells.main_thread import MainThreadCall, MainThreadWait
from oh_jupyter.kernel.own_server import is_from_vscode
from oh_jupyter.runtime.approvals import Scope
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.text import visible

if TYPE_CHECKING:
    from oh_jupyter.kernel.display.live import LiveDisplay
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.confirmation import Decision, PendingAction
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


Cell = Mapping[str, Any]  # the request that executed it


class QuestionNotices:
    """Shows each Action that waits, and what became of it; on the runtime's loop."""

    def __init__(
        self, kernel: Any, executor: ActionExecutor, last_cell: Callable[[], Cell | None]
    ) -> None:
        """Start; ``last_cell`` returns the cell that VS Code ran last, or None."""
        self._kernel = kernel
        self._executor = executor
        self._last_cell = last_cell
        self._shown: dict[int, LiveDisplay] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._decisions: dict[int, str] = {}
        executor.confirmations.on_question(self._update)
        executor.confirmations.on_decision(self._note)

    def _note(self, id: int, decision: Decision) -> None:
        if id in self._shown:
            where = f" in {decision.by}" if decision.by else ""
            self._decisions[id] = f"{'Approved' if decision.approved else 'Rejected'}{where}."

    def _update(self) -> None:
        waiting = self._executor.confirmations.waiting
        for id in self._shown.keys() - waiting.keys():
            notice = self._shown.pop(id)
            text = self._decisions.pop(id, "It no longer waits.")
            if notice.shown:
                notice.show(_decision_bundle(text))
        cell = self._last_cell()
        if cell is None or not waiting:
            return
        from oh_jupyter.kernel.display.live import LiveDisplay

        if is_asking():
            return
        for id in waiting.keys() - self._shown.keys():
            self._shown[id] = notice = LiveDisplay(self._kernel, cell)
            task = asyncio.get_running_loop().create_task(self._show(id, notice, waiting[id]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show(self, id: int, notice: LiveDisplay, pending: PendingAction) -> None:
        diff = await self._executor.preview(pending.action)
        if self._shown.get(id) is notice:
            notice.show(question_bundle(id, pending, diff))


def question_bundle(id: int, pending: PendingAction, diff: str) -> dict[str, Any]:
    """Return a question as text and HTML, with the lines that decide."""
    import oh_jupyter.kernel.display.html as html

    agent, message = pending.agent or "An agent", pending.message
    title = f"{agent} waits for your decision ({pending.reason}; {pending.terms})"
    values = visible("".join(f" --value {field.name}=…" for field in pending.form))
    lines = f'%oh_confirm {id}{values}\n%oh_confirm {id} --reject "why"'
    text = "\n".join(filter(None, (title, message, diff, "In a new cell:", lines)))
    parts = (
        html.heading(title),
        html.output_block(message),
        html.diff_block(diff),
        html.heading("In a new cell:"),
        html.output_block(lines),
    )
    return {"text/plain": text, "text/html": html.card(*parts, tone="dry-run")}


def _decision_bundle(text: str) -> dict[str, Any]:
    import oh_jupyter.kernel.display.html as html

    return {"text/plain": text, "text/html": html.card(html.heading(text))}
