"""Running cells: in a kernel over ZMQ, in a subprocess kernel, or behind a Jupyter server."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CellOutput", "CellRunner", "captured_outputs"]


@dataclass
class CellOutput:
    """What a cell put out.

    Attributes:
        text: Streams, results and tracebacks in order of arrival, without colour codes.
        image_urls: Images as data URLs, in order.
        timed_out: The cell was interrupted because its time was over.
        notebook_outputs: Everything, as a notebook stores it.
        execution_count: The kernel's number for the cell, if it told.
        omitted_chars: Characters that the text lacks where it says so, because it was too long.
    """

    text: str = ""
    image_urls: list[str] = field(default_factory=list)
    timed_out: bool = False
    notebook_outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None
    omitted_chars: int = 0


captured_outputs: ContextVar[list[CellOutput] | None] = ContextVar("captured_outputs", default=None)
"""Where whoever stores a cell in a notebook gets what the Observation has no place for."""


class CellRunner(Protocol):
    """Runs cells in a kernel's main shell."""

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Run a cell to its end.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted; None for no limit.
            silent: Show it to nobody.

        Returns:
            Its output, complete and in order.
        """
        ...
