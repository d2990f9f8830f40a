"""Operations on Actions: their execution, progress, questions and log entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oh_jupyter.operations.declaration import Operation, optional


@dataclass(frozen=True)
class OutputBatch:
    """Outputs of a running cell.

    Attributes:
        first: Position of the first one, counted from 0.
        outputs: The outputs in the notebook format.
    """

    first: int
    outputs: list[dict[str, Any]]


@dataclass(frozen=True)
class UnseenOutputs:
    """Outputs of a cell that ended which its follower lacks; empty if nobody follows it.

    Attributes:
        first: Position of the first one, counted from 0.
        outputs: The outputs in the notebook format.
    """

    first: int | None = optional(None)
    outputs: list[dict[str, Any]] | None = optional(None)  # noqa: RUF009


@dataclass(frozen=True)
class CellResult:
    """The result of a cell that ran as an Action.

    Attributes:
        observation: Its Observation in wire form.
        file: File with the whole text of a long output; "" for others.
        outputs: All outputs in the notebook format.
        execution_count: Its number; null if it did not run.
        rest: Outputs that the client which follows it lacks.
    """

    observation: dict[str, Any]
    file: str
    outputs: list[dict[str, Any]]
    execution_count: int | None
    rest: UnseenOutputs


@dataclass(frozen=True)
class Progress:
    """State of an Action.

    Attributes:
        state: What it does.
        text: Its last lines of output.
    """

    state: Literal["queued", "waiting", "running", "ended"]
    text: str


@dataclass(frozen=True)
class Choice:
    """A value that a person can choose.

    Attributes:
        value: The value.
        title: Its title.
    """

    value: str
    title: str


@dataclass(frozen=True)
class FormField:
    """One value for which an agent asks.

    Attributes:
        name: Its name in the agent's schema.
        title: Its title for people.
        type: Its type.
        description: A longer description.
        choices: The values to choose from; empty if any value is possible.
        is_required: Whether the agent needs it.
        default: The value if the person gives none; null for none.
        minimum: Smallest number, length of a text, or number of choices.
        maximum: Largest one.
    """

    name: str
    title: str
    type: Literal["string", "number", "integer", "boolean", "array"]
    description: str
    choices: list[Choice]
    is_required: bool
    default: Any
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class Question:
    """An Action that waits for a person.

    Attributes:
        id: Its event id.
        agent: Name of the agent that asks; "" if it is unknown.
        message: What the Action does.
        reason: Why it waits, as one clause.
        reasons: Why it waits, one by one.
        diff: Diff of an edit; "" for other Actions.
        seconds_left: Seconds until it is rejected.
        sandboxed: Whether it would run in a sandbox; null where nobody expects one.
        is_question: Whether the agent asks for the values of the form, which can be empty, instead
            of asking for permission.
        form: The values for which the agent asks.
    """

    id: int
    agent: str
    message: str
    reason: str
    reasons: list[str]
    diff: str
    seconds_left: float
    sandboxed: bool | None
    is_question: bool
    form: list[FormField]


@dataclass(frozen=True)
class ExecuteAction(Operation[dict[str, Any]], scope="anyone", names_actor=True):
    """Execute the Action in the body, and return its Observation.

    Attributes:
        relative_paths: The path of an edit is relative to the shell's directory.
    """

    relative_paths: bool = False


@dataclass(frozen=True)
class RunCell(Operation[CellResult], scope="anyone", names_actor=True):
    """Execute the ``run_ipython`` Action in the body; return its outputs in the notebook format.

    Attributes:
        store_history: Number the cell like a person's.
        begin_within: Seconds after which a cell that has not started is withdrawn.
        follow: Key by which ``cell_outputs`` refers to the cell; "" if nobody follows it.
        seen: Number of outputs that the client has already; the reply has the others.
        env: Environment variables of the cell, for a client that follows it.
    """

    store_history: bool = False
    begin_within: float | None = None
    follow: str = ""
    seen: int = 0
    env: dict[str, Any] | None = None


@dataclass(frozen=True)
class CellOutputs(Operation[OutputBatch], scope="anyone"):
    """Return the outputs of a running cell after the first ones.

    Attributes:
        of: The cell's ``follow`` key.
        seen: Number of outputs that the client has already.
        wait: Seconds to wait for another one.
    """

    of: str
    seen: int = 0
    wait: float = 0.0


@dataclass(frozen=True)
class KeepText(Operation[str], scope="anyone"):
    """Keep the text in the body in a file that agents can read; return its path."""


@dataclass(frozen=True)
class UndoNotes(Operation[None], scope="agent", names_actor=True):
    """Return the notes on undone changes that the agent has not received."""


@dataclass(frozen=True)
class AnnounceEdit(Operation[None], scope="agent", names_actor=True):
    """Begin a turn for an edit that the server is about to make for an agent.

    Attributes:
        path: The file.
    """

    path: str


@dataclass(frozen=True)
class FinishEdit(Operation[None], scope="agent", names_actor=True):
    """Record that the server has made an announced edit.

    Attributes:
        path: The file.
    """

    path: str


@dataclass(frozen=True)
class RecordEdit(Operation[None], scope="anyone", names_actor=True):
    """Record an edit that the server made for an agent, or a person in a tab.

    Attributes:
        action: The edit's Action, in wire form.
        content: Content of its Observation.
        diff: Its unified diff.
        source: Who made it.
    """

    action: dict[str, Any]
    content: str
    diff: str
    source: Literal["agent", "user"] = "agent"


@dataclass(frozen=True)
class Peek(Operation[Progress], scope="anyone"):
    """Return the state of an Action and its last lines of output.

    Attributes:
        of: Key of the request that executes it.
        id: Its event id, where there is no key.
        seen: Do not reply before the state differs from this one.
        wait: Seconds after which it is returned nevertheless.
    """

    of: str = ""
    id: int | None = None
    seen: dict[str, Any] | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class Interrupt(Operation[None], scope="anyone"):
    """Interrupt the command in the shell, as the kernel's own interrupt does for cells.

    Attributes:
        requested: Time of the kernel's monotonic clock, in seconds; a command that started after
            it is left alone.
    """

    requested: float | None = None


@dataclass(frozen=True)
class Confirmations(Operation[list[Question]], scope="anyone"):
    """List the Actions that wait for a person, with the diffs of edits.

    Attributes:
        of: Only the Action of the request with this key.
        known: Ids that the client has already.
        wait: Seconds to wait until the ids differ from those.
    """

    of: str = ""
    known: list[int] = field(default_factory=list)
    wait: float = 0.0


@dataclass(frozen=True)
class Confirm(Operation[None], scope="anyone"):
    """Decide on an Action that waits for a person.

    Attributes:
        id: Its event id.
        approve: Whether it runs.
        by: Interface in which the person decided.
        reason: Reason of a rejection, which the agent reads.
        for_session: Also approve later Actions of its type that wait for the same reasons.
        for_workspace: Also approve those of later sessions in the workspace.
        values: Answers to a question, by the names of its fields.
    """

    id: int
    approve: bool
    by: str = ""
    reason: str = ""
    for_session: bool = False
    for_workspace: bool = False
    values: dict[str, Any] | None = None


@dataclass(frozen=True)
class Withdraw(Operation[None], scope="anyone"):
    """Cancel an Action while it waits for a person.

    Attributes:
        of: Key of the request that executes it.
    """

    of: str
