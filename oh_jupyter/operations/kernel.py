"""Operations on the kernel itself: its variables and cells, and the question before a restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oh_jupyter.operations.declaration import Operation, bounded, optional


@dataclass(frozen=True)
class VariableRow:
    """A variable in a table.

    Attributes:
        name: Its name.
        type: Name of its type.
        shape: Shape of an array or table, or the length of a collection; "" for others.
        bytes: Its size, 0 if it is unknown.
        head: The beginning of its value.
    """

    name: str
    type: str
    shape: str
    bytes: int
    head: str


@dataclass(frozen=True)
class VariableView:
    """Variables in a table, or one variable.

    Attributes:
        variables: A row for each of the first ones.
        omitted: Number of further ones.
        modules: Names of modules.
        text: Description of the one that was asked for; null for a table.
        images: Its images as data URLs.
    """

    variables: list[VariableRow] = field(default_factory=list)
    omitted: int = 0
    modules: list[str] = field(default_factory=list)
    text: str | None = None
    images: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CellSummary:
    """A cell that the kernel executes.

    Attributes:
        first_line: The beginning of its first line.
        lines: Number of its lines.
        seconds: Time for which it has been running.
        by: Who runs it.
        waits: Whether it waits for an Action or an agent, and computes nothing; missing if not.
    """

    first_line: str
    lines: int
    seconds: float
    by: Literal["agent", "person"]
    waits: bool = optional(False)


@dataclass(frozen=True, kw_only=True)
class CellInProgress(CellSummary):
    """The cell that the kernel executes, with its output so far.

    Attributes:
        code: Its code.
        cell_id: Id of the notebook's cell; "" if the frontend does not name it.
        output: Its output so far as text; the middle of a long one is left out.
        file: File with more of a long output; "" for others.
    """

    code: str
    cell_id: str
    output: str
    file: str


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Attributes:
        name: Its name.
        type: Its type.
        is_number: Whether its values are numbers.
    """

    name: str
    type: str
    is_number: bool


@dataclass(frozen=True)
class TablePage:
    """Rows of a table, as texts.

    Attributes:
        kind: Name of the table's type.
        columns: The first columns.
        omitted_columns: Number of further ones.
        index: Label of each row.
        rows: The values of each row.
        start: Position of the first row among those that match.
        total: Number of rows of the table.
        matching: Number of rows that match the filter.
    """

    kind: str
    columns: list[TableColumn]
    omitted_columns: int
    index: list[str]
    rows: list[list[str]]
    start: int
    total: int
    matching: int


@dataclass(frozen=True)
class Variables(Operation[VariableView], scope="anyone"):
    """List the notebook's variables, or describe one.

    Attributes:
        name: The variable to describe; null for a list.
        pattern: Names to list, such as ``df*``; "" for all.
    """

    name: str | None = None
    pattern: str = ""


@dataclass(frozen=True)
class TableRows(Operation[TablePage], scope="anyone"):
    """Return rows of a data frame.

    Attributes:
        name: The variable.
        start: Position of the first row among those that match.
        count: Maximum number of rows.
        sort: Position of the column to sort by; null for the order of the table.
        descending: Sort in descending order; missing values always come last.
        filter: Text that any column of a row must contain, in upper or lower case.
    """

    name: str
    start: int = bounded(0, minimum=0)
    count: int = bounded(0, minimum=0)
    sort: int | None = bounded(None, minimum=0)
    descending: bool = False
    filter: str = ""


@dataclass(frozen=True)
class NotebookFile(Operation[str], scope="anyone"):
    """Return the path of the notebook, on the machine of its editor, or ""."""


@dataclass(frozen=True)
class RunningCell(Operation[CellInProgress | None], scope="anyone"):
    """Return the cell that the kernel executes, with its output so far, or null.

    A long output is shortened, and the ``file`` of the reply has more of it.
    """


@dataclass(frozen=True)
class VariableText(Operation[bytes], scope="agent"):
    """Return the text of a variable, which is a str, or bytes in UTF-8.

    Attributes:
        name: The variable.
    """

    name: str


@dataclass(frozen=True)
class SaveVariable(Operation[dict[str, Any]], scope="agent", names_actor=True):
    """Save a variable in a file of the workspace, as an Action of the agent.

    Attributes:
        name: The variable.
        path: The file, whose suffix is the format.
    """

    name: str
    path: str


@dataclass(frozen=True)
class Evaluate(Operation[dict[str, Any]], scope="agent", names_actor=True):
    """Evaluate an expression beside the running cell, as an Action of the agent.

    Attributes:
        expression: Python expression that only reads.
    """

    expression: str


@dataclass(frozen=True)
class AskRestart(Operation[dict[str, Any]], scope="agent", names_actor=True):
    """Ask a person before a restart of the kernel; return the Observation of the decision."""
