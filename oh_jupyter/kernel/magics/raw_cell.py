"""The body of a cell as it was typed."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

__all__ = ["RawCell"]


class RawCell:
    """Remembers the cell that runs, for a cell magic whose body is no Python.

    IPython takes ``>>>`` and ``...`` at line starts for prompts and removes them, and the
    indentation with them, before a magic sees the text. A file may well have such lines.
    """

    def __init__(self, shell: InteractiveShell, magic: str) -> None:
        self._shell = shell
        self._start = f"%%{magic}"
        self._raw = ""
        shell.events.register("pre_run_cell", self._remember)

    def close(self) -> None:
        """Listen no more."""
        self._shell.events.unregister("pre_run_cell", self._remember)

    def _remember(self, info: Any) -> None:
        self._raw = info.raw_cell or ""

    def body(self, line: str, cell: str) -> str:
        """The body of the cell that runs, as it was typed; ``cell`` if nobody has typed it.

        ``line`` and ``cell`` are what the magic got.
        """
        first, newline, body = self._raw.lstrip("\n").partition("\n")
        if not newline or first.strip() != f"{self._start} {line}".strip():
            return cell
        return body if body.endswith("\n") else body + "\n"
