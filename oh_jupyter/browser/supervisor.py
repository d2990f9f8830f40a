"""Worker process of a browser: start, requests, restart and idle timer."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, replace
from typing import IO, Any

from oh_jupyter.background import start_thread, start_timer
from oh_jupyter.browser.channel.pipe import CLOSE_SECONDS, LaunchSettings, read_frame, write_frame
from oh_jupyter.browser.channel.tempdir import TempDir
from oh_jupyter.browser.executable import NODE_VARIABLE, find_executable, find_node
from oh_jupyter.errors import BrowserError, BrowserTimeoutError, ChildStartError
from oh_jupyter.installed import python_command, python_environment
from oh_jupyter.process import PIPE, Child, spawn


class WorkerGoneError(BrowserError):
    """Exit of the worker process."""


class WorkerSettingsError(BrowserError):
    """Failure to start that another attempt would repeat."""


class WorkerProcess:
    """One worker process and its pending requests."""

    def __init__(self, module: str, tempdir: TempDir, node: str) -> None:
        temporary = str(tempdir.recreate_temporary())
        environment = python_environment(TMPDIR=temporary, **{NODE_VARIABLE: node})
        # Unlike a pipe, a file needs no reader.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._child: Child = spawn(
            python_command(module),
            env=environment, stdin=PIPE, stdout=PIPE, stderr=self._errors,
            remove_when_orphaned=tempdir.path,
        )  # fmt: skip
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._input = self._child.stdin
        self._output = self._child.stdout
        self._pending: dict[int, Future[Any]] = {}
        self._uncancellable: set[int] = set()
        self._lock = threading.Lock()
        self._count = 0
        self._gone = False
        self.needs_ping = False
        self._reader = start_thread(self._read, "oh-browser-reader")

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return not self._gone

    def request(self, message: dict[str, Any], timeout: float, grace: float = 0.0) -> Any:
        """Send a request and wait for its response.

        Args:
            message: The request.
            timeout: Seconds that it may take, for the message of a timeout.
            grace: Further seconds to wait.

        Returns:
            The result.

        Raises:
            BrowserTimeoutError: No response in time; the worker cancels the request.
            WorkerGoneError: The process ended.
            BrowserError: The request failed or was cancelled.
        """
        response: Future[Any] = Future()
        with self._lock:
            if self._gone:
                raise WorkerGoneError("The browser process has ended.")
            self._count += 1
            number = self._count
            self._pending[number] = response
            if message["op"] in ("ping", "start", "watch", "pick"):
                self._uncancellable.add(number)
        is_sent = False
        try:
            self._send({**message, "id": number})
            is_sent = True
            return response.result(timeout + grace)
        except BrowserError:
            raise
        except TimeoutError:
            self._cancel(number)
            step = message.get("action") or message["op"]
            raise BrowserTimeoutError(
                f"The browser did not answer within {timeout:g} s; the step was cancelled: {step}"
            ) from None
        except BaseException:
            # After an incomplete frame, the worker cannot parse any later one.
            self.needs_ping = self.needs_ping or not is_sent
            self._cancel(number)
            raise

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            try:
                write_frame(self._input.fileno(), message)
            except (OSError, ValueError):
                self._pending.pop(message["id"], None)
                # The reader may not have reached the end of the output yet.
                self._gone = True
                raise WorkerGoneError("The browser process has ended.") from None

    def interrupt(self) -> None:
        """Cancel all pending requests except the start, pings, pictures and picks."""
        with self._lock:
            numbers = [number for number in self._pending if number not in self._uncancellable]
            cancelled = {number: self._pending.pop(number) for number in numbers}
        for number, response in cancelled.items():
            self._cancel(number)
            response.set_exception(BrowserError("The step was cancelled."))

    def _cancel(self, number: int) -> None:
        """Cancel a request in the worker and drop its late response."""
        with self._lock:
            self._pending.pop(number, None)
            with contextlib.suppress(OSError, ValueError):
                write_frame(self._input.fileno(), {"op": "cancel", "id": 0, "step": number})

    def _read(self) -> None:
        try:
            while (
                message := read_frame(self._output.fileno(), replace_surrogates=True)
            ) is not None:
                with self._lock:
                    response = self._pending.pop(message["id"], None)
                    self._uncancellable.discard(message["id"])
                if response is None:
                    continue
                if message.get("is_final"):
                    response.set_exception(WorkerSettingsError(message["error"]))
                elif "error" in message:
                    response.set_exception(BrowserError(message["error"]))
                else:
                    response.set_result(message["result"])
        except (OSError, ValueError):
            pass
        with self._lock:
            self._gone = True
            pending, self._pending = self._pending, {}
        for response in pending.values():
            response.set_exception(WorkerGoneError("The browser process has ended."))

    def _close_input(self, timeout: float) -> bool:
        """Close the pipe; return False if a frame is still being written after ``timeout``."""
        # The rest of that frame would go to the next file that gets the descriptor.
        if not self._lock.acquire(timeout=timeout):
            return False
        try:
            with contextlib.suppress(OSError):
                self._input.close()
        finally:
            self._lock.release()
        return True

    def stderr_tail(self) -> str:
        """Return the end of the worker's standard error."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-1500:].strip()

    def end(self, graceful: bool = True, seconds: float = CLOSE_SECONDS) -> None:
        """Stop the process, its browser and all descendants."""
        # The worker closes the browser properly when its input ends.
        if self._close_input(seconds if graceful else 0) and graceful:
            with contextlib.suppress(TimeoutError):
                self._child.wait(seconds)
        self._child.terminate(1.0)
        self._close_input(5.0)
        self._reader.join(5.0)
        self._output.close()
        self._errors.close()


START_TIMEOUT_SECONDS = 45.0
"""Timeout of one attempt to start."""
TASK_START_TIMEOUT_SECONDS = 180.0
"""Start timeout with a BrowserGym task, which may log in to several sites."""
PING_TIMEOUT_SECONDS = 5.0
"""Timeout of the ping after a request that timed out or was interrupted."""
ASIDE_GRACE_SECONDS = 10.0
"""Grace period after the timeout of a request that runs alongside the steps."""
PAGES_LOST = "open pages, history and form input are lost"


class Supervisor:
    """Owner of at most one worker; thread-safe only where noted."""

    def __init__(self, module: str, settings: LaunchSettings, attempts: int) -> None:
        """Prepare; no worker starts yet."""
        self.restart_notice = ""
        self.is_closed = False
        self._module = module
        self._settings = settings
        self._attempts = max(1, attempts)
        self._start_timeout = TASK_START_TIMEOUT_SECONDS if settings.task else START_TIMEOUT_SECONDS
        self._worker: WorkerProcess | None = None
        self._tempdir: TempDir | None = None
        self._tabs: dict[str, Any] | None = None

    @property
    def lost_state(self) -> str:
        """State that an unexpected exit of the browser loses, as a clause for a message."""
        settings = self._settings
        if settings.task:
            return f"cookies, {PAGES_LOST}, and the task's episode restarted without rewards"
        if settings.cdp_url:
            return "the current operation is lost; the running browser keeps its tabs and cookies"
        if settings.user_data_dir:
            return (
                f"{PAGES_LOST}; the profile keeps cookies and local storage, except session "
                "cookies and changes of the last 30 s"
            )
        if settings.storage_state:
            return f"{PAGES_LOST}; cookies and local storage are reset to the storage state"
        return f"cookies, {PAGES_LOST}"

    def start(self) -> WorkerProcess:
        """Start a worker unless one runs, and return it."""
        if self.is_closed:
            raise BrowserError("The browser environment is closed; create a new BrowserEnv.")
        worker = self._worker
        if worker is not None and worker.needs_ping and worker.is_alive():
            worker.needs_ping = False
            try:
                worker.request({"op": "ping"}, PING_TIMEOUT_SECONDS)
            except BrowserError:
                worker.end(graceful=False)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.end()
            self.restart_notice = f"The browser had exited and was restarted: {self.lost_state}."
        worker = self._start_worker()
        if self.is_closed:
            # Another thread called close, which did not see this worker.
            worker.end()
            raise BrowserError("The browser environment was closed while the browser started.")
        self._worker = worker
        tabs, self._tabs = self._tabs, None
        if tabs is not None:
            with contextlib.suppress(BrowserError):
                worker.request({"op": "reopen", **tabs}, START_TIMEOUT_SECONDS)
            self.restart_notice = (
                "The browser was closed while idle. Its tabs were reopened with their cookies and "
                "local storage; history and form input are lost."
            )
        return worker

    def suspend(self) -> None:
        """Stop the worker until the next request, which reopens its tabs."""
        worker, settings = self._worker, self._settings
        if worker is None or not worker.is_alive() or settings.task or settings.cdp_url:
            return
        with contextlib.suppress(BrowserError):
            tabs = worker.request({"op": "tabs"}, START_TIMEOUT_SECONDS)
            state = tabs.pop("storage_state")
            self._worker, self._tabs = None, tabs
            if not settings.user_data_dir:
                self._settings = replace(settings, storage_state=state)
            worker.end(seconds=settings.close_seconds)

    def request(self, request: Mapping[str, Any], timeout: float, grace: float = 0.0) -> Any:
        """Send a request to the worker; start one if none runs."""
        worker = self.start()
        try:
            return worker.request(dict(request), timeout, grace)
        except BrowserTimeoutError:
            worker.needs_ping = True
            raise
        except WorkerGoneError:
            self._raise_if_closed()
            worker.end(graceful=False)  # it may still appear alive; later requests need a new one
            raise
        except BrowserError as error:
            if worker.is_alive():
                raise
            self._raise_if_closed()
            raise WorkerGoneError(str(error)) from error

    def begin_task(self, task: str, seed: int) -> None:
        """Switch this worker and all later ones to another BrowserGym task."""
        self._settings = replace(self._settings, task=task, seed=seed)
        if self._worker is not None and self._worker.is_alive():
            self.request({"op": "begin_task", "task": task, "seed": seed}, self._start_timeout)

    def _raise_if_closed(self) -> None:
        if self.is_closed:
            raise BrowserError("The browser was closed while a step was waiting.")

    def check_alive(self, timeout: float) -> bool:
        """Return whether worker and browser respond. Thread-safe."""
        worker = self._worker
        if worker is None or not worker.is_alive():
            return False
        try:
            worker.request({"op": "ping"}, timeout)
        except BrowserError:
            return False
        return True

    def ask_aside(self, request: dict[str, Any], seconds: float) -> Any:
        """Send a long request alongside the steps; None if no browser runs. Thread-safe."""
        worker = self._worker
        if worker is None or not worker.is_alive():
            return None
        return worker.request({**request, "seconds": seconds}, seconds, grace=ASIDE_GRACE_SECONDS)

    def interrupt(self) -> None:
        """Cancel the pending requests. Thread-safe."""
        worker = self._worker
        if worker is not None:
            worker.interrupt()

    def close(self) -> None:
        """Stop the worker; pending requests raise an error. Thread-safe."""
        self.is_closed = True
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(seconds=self._settings.close_seconds)
        if self._tempdir is not None:
            self._tempdir.close()

    def _start_worker(self) -> WorkerProcess:
        settings = self._settings
        if not settings.cdp_url:
            settings = replace(settings, executable=find_executable(settings.executable or None))
        node = find_node()
        if self._tempdir is None:
            self._tempdir = TempDir()
        downloads = settings.downloads_dir or str(self._tempdir.downloads)
        settings = replace(settings, downloads_dir=downloads)
        reasons: list[str] = []
        for attempt in range(self._attempts):
            # Chromium's sandbox does not work for root, nor in some containers.
            is_root = getattr(os, "geteuid", lambda: 1)() == 0
            settings = replace(settings, sandbox=not is_root and attempt == 0)
            try:
                worker = WorkerProcess(self._module, self._tempdir, node)
            except ChildStartError as error:
                reasons.append(str(error))
                continue
            try:
                worker.request({"op": "start", "settings": asdict(settings)}, self._start_timeout)
            except WorkerSettingsError as error:
                worker.end()
                raise BrowserError(str(error)) from None
            except BrowserError as error:
                reasons.append(f"{error} {worker.stderr_tail()}".strip())
                worker.end()
                continue
            except BaseException:
                worker.end()
                raise
            return worker
        raise BrowserError(
            f"The browser {settings.cdp_url or settings.executable} did not start in "
            f"{len(reasons)} attempts. `oh-jupyter doctor` tries the browser and the driver that "
            f"controls it. Last error: {reasons[-1]}"
        )


class IdleTimer:
    """Timer that calls back from its own thread some seconds after the last touch."""

    def __init__(self, seconds: float | None, on_idle: Callable[[], None]) -> None:
        """Prepare the timer; the first touch starts it, unless ``seconds`` is 0 or None."""
        self._seconds = seconds
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def touch(self) -> None:
        """Restart the timer."""
        with self._lock:
            self._cancel()
            if self._seconds and not self._is_closed:
                self._timer = start_timer(self._seconds, self._on_idle, "oh-browser-idle")

    def close(self) -> None:
        """Stop the timer permanently."""
        with self._lock:
            self._is_closed = True
            self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def checked_seconds(name: str, value: float | None) -> float:
    """Return a valid number of seconds; 0 for None, which means never."""
    if value is None:
        return 0.0
    # The chained comparison also rejects NaN.
    if not (isinstance(value, int | float) and 0 <= value <= threading.TIMEOUT_MAX):
        raise BrowserError(
            f"{name} must be a number of seconds, 0 or more, or None for never, not {value!r}"
        )
    return value
