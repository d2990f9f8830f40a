"""The parent's end of the worker: its process, and the requests that wait for answers."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from oh_jupyter.browser.channel.pipe import read_frame, write_frame
from oh_jupyter.browser.channel.tempdir import TempDir
from oh_jupyter.errors import BrowserError, BrowserTimeoutError
from oh_jupyter.process import PIPE, Child, spawn

__all__ = ["WorkerGoneError", "WorkerProcess", "WorkerSettingsError"]


class WorkerGoneError(BrowserError):
    """The worker process ended."""


class WorkerSettingsError(BrowserError):
    """The worker cannot do what it was started for, and never will."""


class WorkerProcess:
    """One worker process, and the requests that wait for its answers."""

    def __init__(self, module: str, tempdir: TempDir) -> None:
        package_root = str(Path(__file__).resolve().parents[2])
        search = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(search),
            "TMPDIR": str(tempdir.recreate_temporary()),
        }
        # Unlike a pipe, a file needs no reader.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._child: Child = spawn(
            [sys.executable, "-m", module],
            env=environment, stdin=PIPE, stdout=PIPE, stderr=self._errors,
            remove_when_orphaned=tempdir.path,
        )  # fmt: skip
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._input = self._child.stdin
        self._output = self._child.stdout
        self._answers: dict[int, Future[Any]] = {}
        self._uncancellable: set[int] = set()
        self._lock = threading.Lock()
        self._count = 0
        self._gone = False
        reader = threading.Thread(target=self._read, name="oh_jupyter browser", daemon=True)
        # A breakpoint in a notebook must not stop this thread.
        reader.pydev_do_not_trace = True  # type: ignore[attr-defined]
        reader.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
        self._reader = reader
        reader.start()

    def is_alive(self) -> bool:
        """Tell whether the process is still there."""
        return not self._gone

    def request(self, message: dict[str, Any], timeout: float, grace: float = 0.0) -> Any:
        """Send a request and wait for its answer; an interrupt only ends the waiting."""
        answer: Future[Any] = Future()
        with self._lock:
            if self._gone:
                raise WorkerGoneError("The browser process has ended.")
            self._count += 1
            number = self._count
            self._answers[number] = answer
            if message["op"] in ("ping", "start"):
                self._uncancellable.add(number)
            try:
                write_frame(self._input.fileno(), {**message, "id": number})
            except (OSError, ValueError):
                self._answers.pop(number, None)
                # Known here before its output is read to the end: the next request starts anew.
                self._gone = True
                raise WorkerGoneError("The browser process has ended.") from None
            except BaseException:
                # Interrupted in the middle of a frame: nothing that follows could be understood.
                self._gone = True
                raise
        try:
            return answer.result(timeout + grace)
        except BrowserError:
            raise
        except TimeoutError:
            self._give_up(number)
            what = message.get("action") or message["op"]
            raise BrowserTimeoutError(
                f"The browser did not answer within {timeout:g} s; the step was cancelled: {what}"
            ) from None
        except BaseException:
            self._give_up(number)
            raise

    def interrupt(self) -> None:
        """Give up what is being waited for, except the start and signs of life."""
        with self._lock:
            numbers = [number for number in self._answers if number not in self._uncancellable]
            waiting = {number: self._answers.pop(number) for number in numbers}
        for number, answer in waiting.items():
            self._give_up(number)
            answer.set_exception(BrowserError("The step was cancelled."))

    def _give_up(self, number: int) -> None:
        """Forget a request: its late answer is dropped, its work is cancelled."""
        with self._lock:
            self._answers.pop(number, None)
            with contextlib.suppress(OSError, ValueError):
                write_frame(self._input.fileno(), {"op": "cancel", "id": 0, "step": number})

    def _read(self) -> None:
        try:
            while (
                message := read_frame(self._output.fileno(), replace_surrogates=True)
            ) is not None:
                with self._lock:
                    answer = self._answers.pop(message["id"], None)
                    self._uncancellable.discard(message["id"])
                if answer is None:
                    continue
                if message.get("is_final"):
                    answer.set_exception(WorkerSettingsError(message["error"]))
                elif "error" in message:
                    answer.set_exception(BrowserError(message["error"]))
                else:
                    answer.set_result(message["result"])
        except (OSError, ValueError):
            pass
        with self._lock:
            self._gone = True
            waiting, self._answers = self._answers, {}
        for answer in waiting.values():
            answer.set_exception(WorkerGoneError("The browser process has ended."))

    def stderr_tail(self) -> str:
        """Read what the worker wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-1500:].strip()

    def end(self, graceful: bool = True) -> None:
        """End the process, its browser, and everything below."""
        # The end of its input asks the worker to close the browser properly.
        with contextlib.suppress(OSError):
            self._input.close()
        if graceful:
            with contextlib.suppress(TimeoutError):
                self._child.wait(3.0)
        self._child.terminate(1.0)
        self._reader.join(5.0)
        self._output.close()
        self._errors.close()
