"""A turn: one prompt, and the agent's texts and steps until it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.text import plural

MAX_TEXT_CHARS = 200_000
MAX_TOOL_CALLS = 500
MAX_OUTPUT_CHARS = 20_000
"""Maximum output of one tool call that is kept."""


@dataclass(frozen=True)
class PlanEntry:
    """A task of the agent's plan.

    Attributes:
        content: Description of the task.
        status: pending, in_progress or completed.
    """

    content: str
    status: str


@dataclass(frozen=True)
class FileDiff:
    """A change of a file as the agent reports it; ``old_text`` is None for a new file."""

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
    """One use of a tool by the agent.

    Attributes:
        id: The agent's id of the call.
        title: The agent's description.
        kind: read, edit, delete, move, search, execute, think, fetch or other.
        status: pending, in_progress, completed or failed.
        arguments: The arguments, as the agent reports them.
        output: Text of the result.
        diffs: Changes of files.
        pictures: Images of the result.
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
        """Whether the call has completed or failed."""
        return self.status in ("completed", "failed")


@dataclass
class AgentTurn:
    """One prompt and its result.

    Attributes:
        agent: The agent's name.
        prompt: The prompt.
        attachments: Names of the context that goes with it.
        request: Key of the request that sent the prompt, by which its sender recognizes the turn;
            "" without.
        parts: Texts and tool calls in order of arrival.
        plan: The latest version of the agent's plan.
        thoughts: The agent's thoughts, if it shares them.
        stop_reason: Why it ended: end_turn, max_tokens, max_turn_requests, refusal or
            cancelled; "" while it runs.
        usage: Tokens by kind, if the agent reports them.
        context_tokens: Tokens in the agent's context after the turn, if the agent reports them.
        context_size: Size of its context; 0 if unknown.
        cost: Cost of the turn in ``currency``; None if the agent does not report it.
        currency: ISO 4217 code.
        diff: Unified diff of the changed files.
        changed_files: Number of edits for each edited file.
        changed_by_commands: Paths of the files that commands or the agent's own tools changed
            without an edit; ``oh.rewind`` undoes that.
        runs_when: For each changed file that programs take as instructions, what a person does
            that runs it, such as "you run make".
        truncated: Whether some of the result was dropped for its size.
        notices: Remarks about the turn, such as missing tools.
        status: Why the agent makes no progress, such as a retry or silence.
        checkpoint: Id of the checkpoint at its start, for ``oh.rewind``; None without.
        undone: Whether a rewind has undone its changes.
        began: Start time in seconds since the epoch; 0 before.
        first_event: Id of the prompt's event; -1 before.
        part_events: For each of ``parts``, the id of the latest event when it began.
        latest_event: Returns the id of the latest event of the runtime.
    """

    agent: str
    prompt: str
    attachments: tuple[str, ...] = ()
    request: str = ""
    parts: list[str | ToolCall] = field(default_factory=list)
    plan: list[PlanEntry] = field(default_factory=list)
    thoughts: str = ""
    stop_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    context_tokens: int = 0
    context_size: int = 0
    cost: float | None = None
    currency: str = ""
    diff: str = ""
    changed_files: dict[str, int] = field(default_factory=dict)
    changed_by_commands: list[str] = field(default_factory=list)
    runs_when: dict[str, str] = field(default_factory=dict)
    truncated: bool = False
    notices: list[str] = field(default_factory=list)
    status: str = ""
    checkpoint: int | None = None
    undone: bool = False
    began: float = 0.0
    first_event: int = -1
    part_events: list[int] = field(default_factory=list, repr=False)
    latest_event: Callable[[], int] = field(default=lambda: -1, repr=False)
    _chars: int = field(default=0, repr=False)
    _calls: dict[str, ToolCall] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """All text from the agent."""
        return "\n\n".join(part.strip("\n") for part in self.parts if isinstance(part, str))

    @property
    def steps(self) -> list[ToolCall]:
        """The tool calls in order."""
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def __repr__(self) -> str:
        """Name the agent and summarize its work."""
        changed = len(self.changed_files) + len(self.changed_by_commands)
        return (
            f"<AgentTurn {self.agent}: {plural(len(self.steps), 'step')}, "
            f"{plural(changed, 'file')} changed, "
            f"{self.stop_reason or 'under way'}>"
        )

    def _room_for(self, text: str) -> str:
        room = text[: max(0, MAX_TEXT_CHARS - self._chars)]
        self._chars += len(room)
        self.truncated = self.truncated or len(room) < len(text)
        return room

    def _add_part(self, part: str | ToolCall) -> None:
        self.parts.append(part)
        self.part_events.append(self.latest_event())

    def add_text(self, text: str) -> None:
        """Append text from the agent."""
        excerpt = self._room_for(text)
        if not excerpt:
            return
        if self.parts and isinstance(self.parts[-1], str):
            self.parts[-1] += excerpt
        else:
            self._add_part(excerpt)

    def add_thought(self, text: str) -> None:
        """Append a thought of the agent."""
        self.thoughts += self._room_for(text)

    def call(self, id: str) -> ToolCall | None:
        """Return the tool call with an id, created if new; None if there are too many."""
        if id not in self._calls:
            if len(self._calls) >= MAX_TOOL_CALLS:
                self.truncated = True
                return None
            self._calls[id] = ToolCall(id)
            self._add_part(self._calls[id])
        return self._calls[id]

    @property
    def unfinished_calls(self) -> Iterator[ToolCall]:
        """The tool calls that are not done."""
        return (call for call in self.steps if not call.is_done)
