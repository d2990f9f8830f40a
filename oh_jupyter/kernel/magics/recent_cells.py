"""The running cell and the last failed one."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class RecentCells:
    """The running cell as typed, and text and exception of the last failed one."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.running = ""
        self.failed: tuple[str, BaseException] | None = None
        self._events: Any = shell.events
        self._events.register("pre_run_cell", self._started)
        self._events.register("post_run_cell", self._ended)

    def close(self) -> None:
        """Stop listening."""
        self._events.unregister("pre_run_cell", self._started)
        self._events.unregister("post_run_cell", self._ended)

    def _started(self, info: Any) -> None:
        # The text that a magic gets lacks what looks like prompts, which a file may contain.
        self.running = info.raw_cell or ""

    def _ended(self, result: Any) -> None:
        error = result.error_in_exec or result.error_before_exec
        code = getattr(result.info, "raw_cell", "") or ""
        if error is not None and not code.lstrip().startswith(("%oh_agent", "%%oh_agent")):
            self.failed = (code, error)
