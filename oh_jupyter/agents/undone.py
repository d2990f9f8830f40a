"""Turns that a person has undone: notices to their agent, and its memory without them."""

from __future__ import annotations

from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.text import shorten

MAX_PROMPT_CHARS = 80
MAX_FILES = 10

MAX_TEXT_CHARS = 4000
"""Maximum length of a text of the person or the agent in what came before."""

MAX_BEFORE_CHARS = 40_000
"""Maximum length of what came before; the oldest turns are left out."""

UNDONE = (
    "Note from oh_jupyter: the user undid your turn {prompt!r}{files}. Files and variables are as "
    "before it; read them again, and do not repeat the changes unless asked."
)
RESTORED = (
    "Note from oh_jupyter: the user restored your turn {prompt!r}{files}, which was undone. Its "
    "changes are in place again; read the files again."
)


BEFORE = (
    "Note from oh_jupyter: the user undid turns of this conversation, with their changes of files "
    "and variables, so it continues from before them. What was said before:"
)


class UndoneTurns:
    """Turns of one conversation, and which of them the agent knows to be undone."""

    def __init__(self) -> None:
        self._turns: list[AgentTurn] = []
        self._reported: set[int] = set()

    def add(self, turn: AgentTurn) -> int:
        """Add a turn that starts; return its number."""
        self._turns.append(turn)
        return len(self._turns) - 1

    @property
    def standing(self) -> tuple[int, ...]:
        """Numbers of the turns that are not undone."""
        return tuple(number for number, turn in enumerate(self._turns) if not turn.undone)

    @property
    def has_news(self) -> bool:
        """Whether turns were undone or restored that the agent knows otherwise."""
        return any(turn.undone != (n in self._reported) for n, turn in enumerate(self._turns))

    def mark_reported(self) -> None:
        """Record that the agent knows the turns that stand, and no other."""
        self._reported = {n for n, turn in enumerate(self._turns) if turn.undone}

    def start_over(self) -> str:
        """Return what an agent without a memory needs to continue, or "" if that is nothing."""
        self.mark_reported()
        standing = [_said(self._turns[number]) for number in self.standing]
        size, first = 0, len(standing)
        while first > 0 and size + len(standing[first - 1]) <= MAX_BEFORE_CHARS:
            first -= 1
            size += len(standing[first])
        omitted = ["(Earlier turns are omitted.)"] if first > 0 else []
        return "\n\n".join([BEFORE, *omitted, *standing[first:]]) if standing else ""

    def notice(self) -> str:
        """Return what the agent does not know yet, or ""; it is then reported."""
        lines = []
        for number, turn in enumerate(self._turns):
            if turn.undone != (number in self._reported):
                lines.append(_line(turn))
                self._reported ^= {number}
        return "\n".join(lines)


def _said(turn: AgentTurn) -> str:
    person, agent = (shorten(text.strip(), MAX_TEXT_CHARS) for text in (turn.prompt, turn.text))
    return f"User: {person}\nYou: {agent or '(nothing)'}"


def _line(turn: AgentTurn) -> str:
    prompt = shorten(" ".join(turn.prompt.split()), MAX_PROMPT_CHARS)
    changed = [*turn.changed_files, *turn.changed_by_commands]
    more = f" and {len(changed) - MAX_FILES} more" if len(changed) > MAX_FILES else ""
    files = f" ({', '.join(changed[:MAX_FILES])}{more})" if changed else ""
    return (UNDONE if turn.undone else RESTORED).format(prompt=prompt, files=files)
