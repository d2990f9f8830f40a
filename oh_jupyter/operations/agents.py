"""Operations on the agents of a kernel, which a person prompts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oh_jupyter.operations.declaration import Operation

AgentState = Literal["busy", "ready", "installed", "missing", "forbidden"]
"""Whether an agent can be prompted, and what it does."""


@dataclass(frozen=True)
class OptionChoice:
    """A value of an agent's option.

    Attributes:
        value: The value.
        name: Its name for people; "" if the agent gives none.
        description: A longer description.
    """

    value: str
    name: str
    description: str


@dataclass(frozen=True)
class AgentOption:
    """An option of an agent's session, such as its mode or model.

    Attributes:
        id: The agent's id.
        name: Its name for people.
        category: Its category: mode, model, model_config, thought_level, or another one.
        current: The current value; ``on`` or ``off`` for a switch.
        choices: Its values; none for a switch.
        is_switch: Whether it is on or off.
        is_mode: Whether it is set by the protocol's older request for modes.
    """

    id: str
    name: str
    category: str
    current: str
    choices: list[OptionChoice]
    is_switch: bool
    is_mode: bool


@dataclass(frozen=True)
class Agent:
    """An agent that a person can prompt.

    Attributes:
        name: Its name.
        state: Whether it can be prompted, and what it does.
        installation: How it is installed.
        options: Options of its session; none before it runs.
        reason: Why an administrator forbids it; "" if it is allowed.
    """

    name: str
    state: AgentState
    installation: str
    options: list[AgentOption]
    reason: str


@dataclass(frozen=True)
class Step:
    """A tool call of an agent.

    Attributes:
        title: Its title.
        status: One of pending, in_progress, completed, failed.
        arguments: The arguments, a line each.
        output: The end of the result.
        files: Paths of the files that the agent reports as changed.
    """

    title: str
    status: str
    arguments: str
    output: str
    files: list[str]


@dataclass(frozen=True)
class PlanEntry:
    """A task of an agent's plan.

    Attributes:
        content: The task.
        status: One of pending, in_progress, completed.
    """

    content: str
    status: str


@dataclass(frozen=True)
class Turn:
    """A prompt, and what the agent did; agent and start time identify it.

    Attributes:
        agent: The agent's name.
        prompt: The prompt.
        request: Key of the request that sent the prompt; "" without.
        began: Start time in seconds since the epoch; 0 before.
        first_event: Id of the prompt's event; -1 before.
        part_events: For each of the parts, the id of the latest event when it began.
        thoughts: The agent's thoughts.
        stop_reason: Why it ended; "" while it runs.
        cost: Cost of the turn; null if the agent does not report it.
        currency: Currency of the cost, as an ISO 4217 code.
        usage: Tokens by kind, if the agent reports them.
        context_tokens: Tokens in the agent's context after the turn.
        context_size: Size of its context; 0 if it is unknown.
        undone: Whether a rewind has undone its changes.
        checkpoint: Id of the checkpoint at its start; null without.
        changed_by_commands: Paths of the files that changed without an edit.
        notices: Remarks, such as missing tools.
        truncated: Whether some of the result was dropped for its size.
        attachments: Names of what went with the prompt.
        changed_files: Paths of the edited files.
        plan: The agent's plan.
        parts: Texts and steps in order.
        runs_when: For each changed file that programs take as instructions, what a person does
            that runs it.
    """

    agent: str
    prompt: str
    request: str
    began: float
    first_event: int
    part_events: list[int]
    thoughts: str
    stop_reason: str
    cost: float | None
    currency: str
    usage: dict[str, int]
    context_tokens: int
    context_size: int
    undone: bool
    checkpoint: int | None
    changed_by_commands: list[str]
    notices: list[str]
    truncated: bool
    attachments: list[str]
    changed_files: list[str]
    plan: list[PlanEntry]
    parts: list[str | Step]
    runs_when: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversation:
    """The agents of a kernel, and their turns.

    Attributes:
        agents: The agents.
        current: The agent used last; null for none.
        turns: The last turns, oldest first.
    """

    agents: list[Agent]
    current: str | None
    turns: list[Turn]


@dataclass(frozen=True)
class WaitingAction:
    """An Action of an agent that waits for a person.

    Attributes:
        id: Its event id.
        message: What the Action does.
        reason: Why it waits.
    """

    id: int
    message: str
    reason: str


@dataclass(frozen=True)
class TurnProgress:
    """The state of a followed turn.

    Attributes:
        state: Names this state in the next request.
        ended: Whether the turn has ended, or there is no such prompt.
        waiting: The Actions of its agent that wait for a person.
        turn: The turn; null before it starts, or without such a prompt.
    """

    state: str
    ended: bool
    waiting: list[WaitingAction]
    turn: Turn | None


@dataclass(frozen=True)
class Agents(Operation[Conversation], scope="person"):
    """Return the agents, the selected one, and the last turns."""


@dataclass(frozen=True)
class PromptAgent(Operation[Turn | None], scope="person"):
    """Prompt an agent; reply with its whole turn, which is broadcast while it runs.

    A prompt whose key has arrived before is not sent again; the reply is null.

    Attributes:
        text: The prompt.
        agent: Name of the agent; null for the last one used.
        new: Start a new conversation.
        resume: Resume the agent's last conversation here, even from an earlier kernel.
        options: Options of its session to set first, such as ``{"mode": "plan"}``.
        context: What goes with the prompt: objects with a ``kind``, which is variable, file or
            text, and a ``name``; those of the last kind also have a ``text`` and may have an
            ``id``.
        wait: Whether the request lasts so long that a reload must not wait for its reply.
    """

    text: str
    agent: str | None = None
    new: bool = False
    resume: bool = False
    options: dict[str, str] = field(default_factory=dict)
    context: list[dict[str, Any]] = field(default_factory=list)
    wait: bool = False


@dataclass(frozen=True)
class InterruptAgent(Operation[None], scope="person"):
    """End the turn of an agent, which stays ready.

    Attributes:
        agent: Name of the agent.
    """

    agent: str


@dataclass(frozen=True)
class FollowTurn(Operation[TurnProgress], scope="person"):
    """Wait until a prompt's turn has another state than the known one.

    Attributes:
        of: Key of the prompt's request, which may arrive later.
        known: State in the previous reply.
        wait: Maximum number of seconds to wait.
    """

    of: str
    known: str = ""
    wait: float = 0.0
