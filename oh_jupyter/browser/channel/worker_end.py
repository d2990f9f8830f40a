"""The worker's end of the pipe: requests come in on standard input, answers go out as frames."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from oh_jupyter.browser.channel.pipe import read_frame, write_frame
from oh_jupyter.browser.channel.protocol import LaunchSettings
from oh_jupyter.errors import BrowserError

__all__ = ["WorkerEnd", "first_line", "run_worker"]


class WorkerEnd:
    """Requests and answers of a worker; the first request starts it."""

    def __init__(self) -> None:
        # Whatever a library prints must not get between the frames.
        self._output = os.dup(1)
        os.dup2(2, 1)
        self._start_id = 0

    def read_settings(self) -> LaunchSettings | None:
        """Wait for the request to start; None if the parent is gone."""
        first = read_frame(0)
        if first is None:
            return None
        self._start_id = first["id"]
        return LaunchSettings(**first["settings"])

    def started(self) -> None:
        """Answer that the worker is ready."""
        self.answer(self._start_id, True)

    def refused(self, reason: str, is_final: bool) -> None:
        """Answer that the worker cannot start; finally, if another attempt would be of no use."""
        write_frame(self._output, {"id": self._start_id, "error": reason, "is_final": is_final})

    def answer(self, number: int, result: Any, is_finite: bool = False) -> None:
        """Answer a request; see ``write_frame`` for what is finite."""
        write_frame(self._output, {"id": number, "result": result}, is_finite=is_finite)

    def fail(self, number: int, error: BaseException) -> None:
        """Answer that a request could not be carried out."""
        write_frame(self._output, {"id": number, "error": first_line(error)})

    def listen(self, on_request: Callable[[dict[str, Any] | None], Any]) -> None:
        """Call back from a thread with each request, and with None when the parent is gone."""

        def read() -> None:
            # RuntimeError: the loop that is called back has ended already.
            with contextlib.suppress(OSError, RuntimeError):
                while (request := read_frame(0)) is not None:
                    on_request(request)
            with contextlib.suppress(RuntimeError):
                on_request(None)

        threading.Thread(target=read, daemon=True).start()


def first_line(error: BaseException) -> str:
    """Return an error's message in a line, with its type unless the error is ours."""
    first = (str(error).strip().splitlines() or [""])[0]
    return first if isinstance(error, BrowserError) else f"{type(error).__name__}: {first}"


def run_worker(serve: Callable[[WorkerEnd], int]) -> NoReturn:
    """Serve until the input or the browser ends, and end the process with the exit status."""
    code = 1
    try:
        code = serve(WorkerEnd())
    finally:
        sys.stderr.flush()
        # The listening thread may be in a blocking read, which nothing would end.
        os._exit(code)
