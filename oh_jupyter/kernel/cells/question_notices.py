"""Questions about agents' Actions below the cell that VS Code ran last.

JupyterLab's panel asks while no cell waits for the agent. VS Code has no panel, but shows outputs
that arrive after the end of their cell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from oh_jupyter.text import visible

if TYPE_CHECKING:
    from oh_jupyter.kernel.display.live import LiveDisplay
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.confirmation import Decision, PendingAction

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
        from oh_jupyter.kernel.cells.question import is_asking
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
