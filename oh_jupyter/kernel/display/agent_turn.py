"""How an agent's turn looks in a cell: its text, its plan, and its steps folded between."""

from __future__ import annotations

import difflib
from html import escape
from typing import Any

import oh_jupyter.kernel.display.html as html
from oh_jupyter.agents import AgentTurn, ToolCall
from oh_jupyter.kernel.display.table import number_text

__all__ = ["turn_bundle", "turn_text"]

_MARKS = {"pending": "○", "in_progress": "▸", "completed": "✓", "failed": "✗"}


def turn_bundle(turn: AgentTurn) -> dict[str, Any]:
    """A turn as text and as Markdown."""
    return {"text/plain": turn_text(turn), "text/markdown": _markdown(turn)}


def turn_text(turn: AgentTurn) -> str:
    """A turn as plain text: what was said, and a line for each step."""
    lines = [*turn.notices]
    lines += [f"{_MARKS.get(entry.status, '○')} {entry.content}" for entry in turn.plan]
    for part in turn.parts:
        lines.append(part.strip("\n") if isinstance(part, str) else _summary(part))
    return "\n".join([*lines, *_remarks(turn)])


def _summary(call: ToolCall) -> str:
    return f"{_MARKS.get(call.status, '○')} {call.title or call.kind}"


def _remarks(turn: AgentTurn) -> list[str]:
    remarks = []
    if turn.stop_reason not in ("", "end_turn"):
        remarks.append(f"[{turn.stop_reason}]")
    if turn.truncated:
        remarks.append("[more than is kept]")
    if turn.cost is not None and turn.stop_reason:
        remarks.append(f"[{number_text(turn.cost)} {turn.currency}]")
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
        count = len(turn.changed_files)
        title = f"Changed: {count} file{'s' if count > 1 else ''}"
        blocks.append(_one_line(html.folded(title, html.diff_block(turn.diff))))
    return "\n\n".join([*blocks, *(f"*{escape(remark)}*" for remark in _remarks(turn))])


def _step(call: ToolCall) -> str:
    body = "".join(html.diff_block(_diff(d.path, d.old_text, d.new_text)) for d in call.diffs)
    if not call.diffs and isinstance(call.arguments, dict):
        told = "\n".join(f"{name}: {value}" for name, value in call.arguments.items())
        body += html.output_block(told[:2000])
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
    """HTML that Markdown takes as one block: an empty line would end it."""
    return text.replace("\n", "&#10;")
