"""A turn: one prompt, and all that the agent said and did until it was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_TEXT_CHARS = 200_000
MAX_TOOL_CALLS = 500
MAX_OUTPUT_CHARS = 20_000
"""What is kept of the output of one tool call."""


@dataclass(frozen=True)
class PlanEntry:
    """A task of the agent's plan.

    Attributes:
        content: What it is.
        status: pending, in_progress or completed.
    """

    content: str
    status: str


@dataclass(frozen=True)
class FileDiff:
    """A change of a file as the agent tells it; ``old_text`` is None for a new file."""

    path: str
    old_text: str | None
    new_text: str


@dataclass(frozen=True)
class Picture:
    """An image in base64."""

    data: str
    mime_type: str


@dataclass
class ToolCall:
    """What the agent did with a tool.

    Attributes:
        id: The agent's id of it.
        title: What it says that it does.
        kind: read, edit, delete, move, search, execute, think, fetch or other.
        status: pending, in_progress, completed or failed.
        arguments: The arguments, as the agent tells them.
        output: The text that came of it.
        diffs: Changes of files.
        pictures: Images that came of it.
    """

    id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    arguments: Any = None
    output: str = ""
    diffs: list[FileDiff] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status in ("completed", "failed")


@dataclass
class AgentTurn:
    """One prompt, and what came of it.

    Attributes:
        agent: The agent's name.
        prompt: What it was asked.
        parts: Texts and tool calls in the order in which they came.
        plan: The agent's plan, as it was last told.
        thoughts: What it thought aloud.
        stop_reason: Why it ended: end_turn, max_tokens, max_turn_requests, refusal or
            cancelled; "" while it goes on.
        usage: Tokens by kind, where the agent tells them.
        cost: What the turn has cost, in ``currency``; None where the agent does not tell.
        currency: ISO 4217 code.
        diff: Unified diff of the files that were changed, by edits or otherwise.
        changed_files: Paths of the files with edits, each with their number.
        changed_by_commands: Paths of the files that commands, or the agent's own tools, changed
            without an edit; ``oh.rewind`` takes that back.
        truncated: Whether more came than is kept.
        notices: What is to be said about the turn, such as tools that are missing.
        status: What keeps the agent from going on, as far as it says so: a retry, a silence.
        checkpoint: Number of the checkpoint at which it began, for ``oh.rewind``; None without.
        began: When it began, in seconds since the epoch; 0 before.
    """

    agent: str
    prompt: str
    parts: list[str | ToolCall] = field(default_factory=list)
    plan: list[PlanEntry] = field(default_factory=list)
    thoughts: str = ""
    stop_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    cost: float | None = None
    currency: str = ""
    diff: str = ""
    changed_files: dict[str, int] = field(default_factory=dict)
    changed_by_commands: list[str] = field(default_factory=list)
    truncated: bool = False
    notices: list[str] = field(default_factory=list)
    status: str = ""
    checkpoint: int | None = None
    began: float = 0.0
    _chars: int = field(default=0, repr=False)
    _calls: dict[str, ToolCall] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """All that the agent said."""
        return "\n\n".join(part.strip("\n") for part in self.parts if isinstance(part, str))

    @property
    def steps(self) -> list[ToolCall]:
        """The tool calls, in the order in which they began."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def __repr__(self) -> str:
        """Name the agent, and how much it did."""
        changed = len(self.changed_files) + len(self.changed_by_commands)
        return (
            f"<AgentTurn {self.agent}: {len(self.steps)} steps, {changed} files changed, "
            f"{self.stop_reason or 'under way'}>"
        )

    def _room_for(self, text: str) -> str:
        kept = text[: max(0, MAX_TEXT_CHARS - self._chars)]
        self._chars += len(kept)
        self.truncated = self.truncated or len(kept) < len(text)
        return kept

    def add_text(self, text: str) -> None:
        """Append to what the agent said."""
        kept = self._room_for(text)
        if not kept:
            return
        if self.parts and isinstance(self.parts[-1], str):
            self.parts[-1] += kept
        else:
            self.parts.append(kept)

    def add_thought(self, text: str) -> None:
        """Append to what the agent thought aloud."""
        self.thoughts += self._room_for(text)

    def call(self, id: str) -> ToolCall | None:
        """The tool call of an id, made when it is new; None if there are too many."""
        if id not in self._calls:
            if len(self._calls) >= MAX_TOOL_CALLS:
                self.truncated = True
                return None
            self._calls[id] = ToolCall(id)
            self.parts.append(self._calls[id])
        return self._calls[id]

    @property
    def unfinished_calls(self) -> Iterator[ToolCall]:
        """The tool calls that have not ended."""
        return (call for call in self.steps if not call.is_done)
