"""An agent's turn as the Markdown of one chat message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from oh_jupyter.operations.agents import Step, Turn, WaitingAction

MAX_TITLE_CHARS = 200
MAX_FILES = 10

_MARKS = {"completed": "✓", "failed": "✗"}
_ENDS = {
    "cancelled": "*Stopped.*",
    "failed": "*The turn failed.*",
    "max_tokens": "*The model's limit of tokens ended the turn.*",
    "max_turn_requests": "*The agent's limit of steps ended the turn.*",
    "refusal": "*The model refused to continue.*",
}


def turn_text(turn: Turn, waiting: Iterable[WaitingAction] = ()) -> str:
    """Return a turn's texts and steps, and the Actions that wait for a person."""
    blocks: list[str] = []
    steps: list[str] = []
    for part in turn.parts:
        if isinstance(part, str):
            blocks += ["\n".join(steps), part.strip("\n")]
            steps = []
        else:
            unfinished = "○" if turn.stop_reason else "…"
            steps.append(f"- {_MARKS.get(part.status, unfinished)} {_step(part)}")
    blocks.append("\n".join(steps))
    blocks += [
        f"**Waits for your approval** in the notebook or its panel: {_code(each.message)} "
        f"({each.reason})"
        for each in waiting
    ]
    blocks += [f"*{notice}*" for notice in turn.notices]
    blocks.append(_ENDS.get(turn.stop_reason, ""))
    if turn.stop_reason:
        blocks.append(_changes([*turn.changed_files, *turn.changed_by_commands]))
        blocks.append("\n".join(_runs_when(turn.runs_when)))
    return "\n\n".join(filter(None, blocks))


def _step(step: Step) -> str:
    """Return a step's title, with the arguments if it is only the name of a tool."""
    name = re.sub(r"^mcp__\w+?__", "", step.title)
    if re.fullmatch(r"\w+", name) and step.arguments:
        return f"{_code(name)} {_code(step.arguments)}"
    return _code(name)


def _changes(files: list[str]) -> str:
    if not files:
        return ""
    names = ", ".join(f"`{path.rpartition('/')[2]}`" for path in files[:MAX_FILES])
    more = f" and {len(files) - MAX_FILES} more" if len(files) > MAX_FILES else ""
    return f"Changed {names}{more}. `/undo` undoes the turn."


def _runs_when(acts: Mapping[str, str]) -> Iterable[str]:
    """Yield a line for each changed file that programs of the person run."""
    for path, act in list(acts.items())[:MAX_FILES]:
        yield f"- {_code(path.rpartition('/')[2])} · runs when {act}"
    if len(acts) > MAX_FILES:
        yield f"- and {len(acts) - MAX_FILES} more files that run"


def _code(text: str) -> str:
    """Return the first line of a text as code, whatever is in it."""
    line = (text.strip().splitlines() or [""])[0][:MAX_TITLE_CHARS].strip()
    return f"``{line}``" if "`" in line else f"`{line}`"
