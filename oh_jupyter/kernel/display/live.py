"""Outputs that other threads update in their cell: turns and notices."""

from __future__ import annotations

import difflib
import os
import re
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

import oh_jupyter.kernel.display.html as html
from oh_jupyter.agents import AgentTurn, ToolCall
from oh_jupyter.background import start_timer
from oh_jupyter.kernel.display.table import number_text
from oh_jupyter.text import visible

NOTICE_DELAY_SECONDS = 1.0
UPDATE_INTERVAL_SECONDS = 0.2
_ONE_MAGIC = re.compile(r"(\w+\s*=\s*)?%oh_")


class LiveDisplay:
    """An output of a cell, which any thread may update."""

    def __init__(self, kernel: Any, cell: Any) -> None:
        """Make it for the request that executes a cell; None of both without a kernel."""
        self._display_id = uuid.uuid4().hex
        self._kernel: Any = kernel
        self.shown = False
        self._parent: Any = cell
        if kernel is not None:
            from jupyter_client.session import Session

            session = kernel.session
            self._session = Session(key=session.key, signature_scheme=session.signature_scheme)

    def show(self, data: dict[str, Any]) -> None:
        """Show a MIME bundle in place of the last one."""
        kind = "update_display_data" if self.shown else "display_data"
        self.shown = True
        transient = {"display_id": self._display_id}
        self._send(kind, {"data": data, "metadata": {}, "transient": transient})

    def remove(self) -> None:
        """Remove the output; leave an empty one if the cell may have others."""
        if not self.shown:
            return
        code = self._parent.get("content", {}).get("code", "").strip()
        if code.startswith("%%oh_") or ("\n" not in code and _ONE_MAGIC.match(code)):
            self._send("clear_output", {"wait": False})
            self.shown = False
        else:
            self.show({})

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        self._session.send(
            self._kernel.iopub_socket, kind, content, parent=self._parent, ident=kind.encode()
        )


class RunningCellDisplay(LiveDisplay):
    """An output of the running cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        kernel: Any = getattr(shell, "kernel", None)
        # Captured outputs cannot be updated.
        self._live = type(shell.display_pub).__name__ == "ZMQDisplayPublisher"
        super().__init__(kernel, None if kernel is None else kernel.get_parent())
        request = self._parent or {}
        self.watched = self._live and request.get("content", {}).get("allow_stdin", False)
        # Consoles show outputs in order and rewrite none.
        self.is_of_notebook = bool(request.get("metadata", {}).get("cellId"))


class _Notice(RunningCellDisplay):
    """A line for a person at the frontend, which must be able to ask for input."""

    def __init__(self, shell: InteractiveShell, text: str) -> None:
        super().__init__(shell)
        self._text = text
        self._lock = threading.Lock()
        self._ended = False
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """Show the line after a delay."""
        if self.watched:
            self._timer = start_timer(NOTICE_DELAY_SECONDS, self._appear, "oh-kernel-notice")

    def _appear(self) -> None:
        with self._lock:
            if not self._ended:
                self.show({"text/plain": self._text})

    def end(self) -> None:
        """Remove the line."""
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            if not self._ended:
                self.remove()
            self._ended = True


@contextmanager
def notice(shell: InteractiveShell, text: str) -> Iterator[_Notice]:
    """Show a line while something takes longer than a second."""
    line = _Notice(shell, text)
    line.begin()
    try:
        yield line
    finally:
        line.end()


class LiveTurn(RunningCellDisplay):
    """Shows a running turn; a terminal, which cannot update, prints new text."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Remember the running cell, which receives all updates."""
        super().__init__(shell)
        self.turn: AgentTurn | None = None
        self._updated = 0.0
        self._printed = 0

    def announce(self, text: str) -> None:
        """Show a line until the turn has content."""
        if self.watched:
            self.show({"text/plain": text})

    def update(self, turn: AgentTurn) -> None:
        """Show new content, from any thread, at a limited rate."""
        self.turn = turn
        if self._kernel is None:
            self._print(turn.text)
        elif self._live and time.monotonic() - self._updated >= UPDATE_INTERVAL_SECONDS:
            self._updated = time.monotonic()
            self.show(turn_bundle(turn))

    def finish(self, turn: AgentTurn) -> None:
        """Show the complete turn, on the main thread."""
        if self._kernel is None:
            self._print("\n".join([turn.text, *_runs_when(turn), ""]))
        elif self.shown:
            self.show(turn_bundle(turn))
        else:
            display(turn_bundle(turn), raw=True)

    def end(self, error: BaseException | None) -> None:
        """Show the end of a background turn, from any thread."""
        bundle = turn_bundle(self.turn) if self.turn is not None else {}
        if error is not None:
            notice = str(error) or "The turn was cancelled."
            bundle = {kind: f"{text}\n\n{notice}" for kind, text in bundle.items()}
            bundle = bundle or {"text/plain": notice}
        if self._kernel is None:
            self._print(bundle["text/plain"] + "\n")
        elif self._live:
            self.show(bundle)

    def _print(self, text: str) -> None:
        sys.stdout.write(text[self._printed :])
        sys.stdout.flush()
        self._printed = max(self._printed, len(text))


_MARKS = {"pending": "○", "in_progress": "▸", "completed": "✓", "failed": "✗"}


def turn_bundle(turn: AgentTurn) -> dict[str, Any]:
    """Return a turn as text and as Markdown."""
    return {"text/plain": _text(turn), "text/markdown": _markdown(turn)}


def _text(turn: AgentTurn) -> str:
    """Return a turn as plain text, with a line for each step."""
    lines = [*turn.notices]
    lines += [f"{_MARKS.get(entry.status, '○')} {entry.content}" for entry in turn.plan]
    for part in turn.parts:
        lines.append(part.strip("\n") if isinstance(part, str) else _summary(part))
    return "\n".join([*lines, *_runs_when(turn), *_remarks(turn)])


def _summary(call: ToolCall) -> str:
    return f"{_MARKS.get(call.status, '○')} {call.title or call.kind}"


def _runs_when(turn: AgentTurn) -> list[str]:
    """Return a line for each changed file that programs of the person run."""
    acts = turn.runs_when.items()
    return [visible(f"{os.path.basename(path)} · runs when {act}") for path, act in acts]


def _remarks(turn: AgentTurn) -> list[str]:
    remarks = [turn.status] if turn.status else []
    if turn.stop_reason not in ("", "end_turn"):
        remarks.append(f"[{turn.stop_reason}]")
    if turn.undone:
        remarks.append("[undone]")
    if turn.truncated:
        remarks.append("[more than is kept]")
    if turn.cost is not None and turn.stop_reason:
        remarks.append(f"[{number_text(turn.cost)} {turn.currency}]")
    if turn.stop_reason and 100 * turn.context_tokens >= turn.context_size > 0:
        remarks.append(f"[context {turn.context_tokens / turn.context_size:.0%}]")
    return remarks


def _markdown(turn: AgentTurn) -> str:
    blocks = [f"*{escape(notice)}*" for notice in turn.notices]
    if turn.thoughts:
        blocks.append(_one_line(html.folded("Thoughts", html.output_block(turn.thoughts))))
    if turn.plan:
        entries = (f"- {_MARKS.get(e.status, '○')} {escape(e.content)}" for e in turn.plan)
        blocks.append("\n".join(entries))
    for part in turn.parts:
        blocks.append(part.strip("\n") if isinstance(part, str) else _one_line(_step(part)))
    if turn.diff:
        count = len(turn.changed_files) + len(turn.changed_by_commands)
        title = f"Changed: {count} file{'s' if count > 1 else ''}"
        blocks.append(_one_line(html.folded(title, html.diff_block(turn.diff))))
    if turn.runs_when:
        blocks.append("\n".join(f"- {line}" for line in map(escape, _runs_when(turn))))
    return "\n\n".join([*blocks, *(f"*{escape(remark)}*" for remark in _remarks(turn))])


def _step(call: ToolCall) -> str:
    body = "".join(html.diff_block(_diff(d.path, d.old_text, d.new_text)) for d in call.diffs)
    if not call.diffs and isinstance(call.arguments, dict):
        arguments = "\n".join(f"{name}: {value}" for name, value in call.arguments.items())
        body += html.output_block(arguments[:2000])
    body += html.output_block(call.output, "error" if call.status == "failed" else "info")
    body += "".join(
        f'<img src="data:{escape(picture.mime_type)};base64,{escape(picture.data)}">'
        for picture in call.pictures
    )
    return html.folded(_summary(call), body)


def _diff(path: str, old: str | None, new: str) -> str:
    lines = difflib.unified_diff(
        (old or "").splitlines(), new.splitlines(), path, path, lineterm=""
    )
    return "\n".join(lines)


def _one_line(text: str) -> str:
    """Return HTML that is one block of Markdown: an empty line would end it."""
    return text.replace("\n", "&#10;")
