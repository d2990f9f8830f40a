"""Running cells in a kernel: over ZMQ, in a subprocess, or behind a Jupyter server."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["CellOutput", "CellRunner", "captured_outputs"]


@dataclass
class CellOutput:
    """Output of a cell.

    Attributes:
        text: Streams, results and tracebacks in order of arrival, without colour codes.
        image_urls: Images as data URLs, in order.
        timed_out: Whether the cell was interrupted after its timeout.
        late_text: What threads of earlier cells have printed since the cell before.
        note: What holds the kernel after the timeout, or "".
        withdrawn: Whether it did not begin in time, and never will.
        notebook_outputs: All outputs in the notebook format.
        execution_count: The kernel's number for the cell, if known.
        omitted_chars: Number of characters that a notice in the text replaces.
    """

    text: str = ""
    image_urls: list[str] = field(default_factory=list)
    timed_out: bool = False
    notebook_outputs: list[dict[str, Any]] = field(default_factory=list)
    execution_count: int | None = None
    omitted_chars: int = 0
    note: str = ""
    late_text: str = ""
    withdrawn: bool = False

    @property
    def raised(self) -> bool:
        """Whether the cell ended with an exception."""
        return any(output.get("output_type") == "error" for output in self.notebook_outputs)


captured_outputs: ContextVar[list[CellOutput] | None] = ContextVar("captured_outputs", default=None)
"""Collects full outputs for callers that store a cell in a notebook."""


class CellRunner(Protocol):
    """Runs cells in a kernel's main shell."""

    async def run_cell(
        self, code: str, *, timeout: float | None = None, silent: bool = False
    ) -> CellOutput:
        """Run a cell to its end.

        Args:
            code: The code of the cell.
            timeout: Seconds after which the cell is interrupted; None for no limit.
            silent: Whether to hide the cell from frontends.

        Returns:
            The output, complete and in order.
        """
        ...
