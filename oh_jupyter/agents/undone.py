"""Notices to an agent about its turns that a person has undone."""

from __future__ import annotations

from oh_jupyter.agents.turn import AgentTurn

MAX_PROMPT_CHARS = 80
MAX_FILES = 10

UNDONE = (
    "Note from oh_jupyter: the user undid your turn {prompt!r}{files}. Files and variables are as "
    "before it; read them again, and do not repeat the changes unless asked."
)
RESTORED = (
    "Note from oh_jupyter: the user restored your turn {prompt!r}{files}, which was undone. Its "
    "changes are in place again; read the files again."
)


class UndoneTurns:
    """Turns of one conversation, and which of them the agent knows to be undone."""

    def __init__(self) -> None:
        self._turns: list[AgentTurn] = []
        self._reported: set[int] = set()

    def add(self, turn: AgentTurn) -> None:
        """Add a turn that starts."""
        self._turns.append(turn)

    def notice(self) -> str:
        """Return what the agent does not know yet, or ""; it is then reported."""
        lines = []
        for number, turn in enumerate(self._turns):
            if turn.undone != (number in self._reported):
                lines.append(_line(turn))
                self._reported ^= {number}
        return "\n".join(lines)


def _line(turn: AgentTurn) -> str:
    prompt = " ".join(turn.prompt.split())
    if len(prompt) > MAX_PROMPT_CHARS:
        prompt = prompt[:MAX_PROMPT_CHARS] + "…"
    changed = [*turn.changed_files, *turn.changed_by_commands]
    more = f" and {len(changed) - MAX_FILES} more" if len(changed) > MAX_FILES else ""
    files = f" ({', '.join(changed[:MAX_FILES])}{more})" if changed else ""
    return (UNDONE if turn.undone else RESTORED).format(prompt=prompt, files=files)
