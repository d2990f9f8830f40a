"""Model of a notebook: cells, and the numbered lines that agents see.

Every cell has a heading line and the lines of its source, and all these lines are
counted from the start of the notebook. So one number names one place: inserting
after a heading puts text at the top of that cell, and never at the end of the one
before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oh_jupyter.editor.notebook.json_spans import Span, elements, members
from oh_jupyter.editor.notebook.validation import is_cell

__all__ = ["Cell", "Notebook"]


@dataclass(frozen=True)
class Cell:
    """One cell, and its place in the text of the file."""

    index: int  # its position, counted from 0
    span: Span
    line: int  # the number of its heading's line, counted from 1

    @cached_property
    def source(self) -> str:
        """The source, which may be stored as a list of lines."""
        source = self.span.value["source"]
        return source if isinstance(source, str) else "".join(source)

    @property
    def type(self) -> str:
        """Its ``cell_type``."""
        return str(self.span.value["cell_type"])

    @property
    def id(self) -> str | None:
        """Its id; None in notebooks older than format 4.5."""
        value = self.span.value.get("id")
        return value if isinstance(value, str) else None

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"cell [{self.index}]" + (f" (id {self.id})" if self.id is not None else "")

    @property
    def last_line(self) -> int:
        """Number of its last line."""
        return self.line + 1 + self.source.count("\n")

    def heading(self, *, executions: bool = True) -> str:
        """Heading line of the cell."""
        parts = [f"# %% [{self.index}] {self.type}"]
        if self.id is not None:
            parts.append(f"id={self.id}")
        count = self.span.value.get("execution_count")
        if executions and count is not None:
            parts.append(f"execution_count={count}")
        return " ".join(parts)


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4."""

    text: str
    top: dict[str, Span]
    cells: list[Cell]

    @classmethod
    def parse(cls, text: str) -> Notebook | None:
        """Notebook of a text; None if it is none, is broken, or is of an older format."""
        start = len(text) - len(text.lstrip(" \t\n\r"))
        try:
            top = members(text, start)
            if _major(top) != 4:
                return None
            spans = elements(text, top["cells"].start)
        except (ValueError, KeyError, RecursionError):
            return None
        cells, line = [], 1
        for index, span in enumerate(spans):
            if not is_cell(span.value):
                return None
            cells.append(Cell(index, span, line))
            line = cells[-1].last_line + 1
        return cls(text, top, cells)

    @property
    def minor(self) -> int:
        """Minor number of its format."""
        minor = self.top.get("nbformat_minor")
        return minor.value if minor is not None and isinstance(minor.value, int) else 0

    @property
    def line_count(self) -> int:
        """Number of lines as it is shown."""
        return self.cells[-1].last_line if self.cells else 0

    def listing(self, *, executions: bool = True) -> str:
        """Headings and sources, without outputs; execution counts on demand."""
        return "\n".join(
            f"{cell.heading(executions=executions)}\n{cell.source}" for cell in self.cells
        )

    def members_of(self, cell: Cell) -> dict[str, Span]:
        """Spans of the values of a cell."""
        return members(self.text, cell.span.start)


def _major(top: dict[str, Span]) -> Any:
    major = top.get("nbformat")
    return major.value if major is not None else None
