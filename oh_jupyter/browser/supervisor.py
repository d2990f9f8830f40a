"""The worker's process, the requests that wait for its answers, and its replacement."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any

from oh_jupyter.background import start_thread, start_timer
from oh_jupyter.browser.channel.pipe import read_frame, write_frame
from oh_jupyter.browser.channel.protocol import CLOSE_SECONDS, LaunchSettings
from oh_jupyter.browser.channel.tempdir import TempDir
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.errors import BrowserError, BrowserTimeoutError, ChildStartError
from oh_jupyter.process import PIPE, Child, spawn


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
        self.needs_ping = False
        self._reader = start_thread(self._read, "oh-browser-reader")

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
            if message["op"] in ("ping", "start", "watch", "pick"):
                self._uncancellable.add(number)
        is_sent = False
        try:
            self._send({**message, "id": number})
            is_sent = True
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
            # Interrupted in the middle of a frame, nothing that follows would be understood.
            self.needs_ping = self.needs_ping or not is_sent
            self._give_up(number)
            raise

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            try:
                write_frame(self._input.fileno(), message)
            except (OSError, ValueError):
                self._answers.pop(message["id"], None)
                # Known here before its output is read to the end: the next request starts anew.
                self._gone = True
                raise WorkerGoneError("The browser process has ended.") from None

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

    def _close_input(self, timeout: float) -> bool:
        """Close the pipe; False if another thread was still writing a frame after ``timeout``."""
        # Closed under its feet, the frame would end up in whatever gets that descriptor next.
        if not self._lock.acquire(timeout=timeout):
            return False
        try:
            with contextlib.suppress(OSError):
                self._input.close()
        finally:
            self._lock.release()
        return True

    def stderr_tail(self) -> str:
        """Read what the worker wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-1500:].strip()

    def end(self, graceful: bool = True, seconds: float = CLOSE_SECONDS) -> None:
        """End the process, its browser, and everything below."""
        # The end of its input asks the worker to close the browser properly.
        if self._close_input(seconds if graceful else 0) and graceful:
            with contextlib.suppress(TimeoutError):
                self._child.wait(seconds)
        self._child.terminate(1.0)
        self._close_input(5.0)
        self._reader.join(5.0)
        self._output.close()
        self._errors.close()


START_TIMEOUT_SECONDS = 45.0
"""Seconds that one attempt to start may take."""
TASK_START_TIMEOUT_SECONDS = 180.0
"""The same where a task of BrowserGym is set up with it, which may log in to several sites."""
PING_TIMEOUT_SECONDS = 5.0
"""Seconds in which a worker has to answer after a request that timed out."""
ASIDE_GRACE_SECONDS = 10.0
"""Seconds more than were asked for, until a request beside the steps is given up."""
PAGES_LOST = "open pages, history and what was entered are lost"


class Supervisor:
    """One worker at a time; not safe to use from several threads, except where said."""

    def __init__(self, module: str, settings: LaunchSettings, attempts: int) -> None:
        """Prepare."""
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
        """What goes with a browser that ends unexpectedly, in half a sentence."""
        settings = self._settings
        if settings.task:
            return f"cookies, {PAGES_LOST}, and the task's episode began anew, without rewards"
        if settings.cdp_url:
            return "what was under way is lost; the running browser keeps its tabs and cookies"
        if settings.user_data_dir:
            return (
                f"{PAGES_LOST}; the profile keeps cookies and local storage, except session "
                "cookies and what was set in the last half minute"
            )
        if settings.storage_state:
            return f"{PAGES_LOST}; cookies and local storage are those of the storage state again"
        return f"cookies, {PAGES_LOST}"

    def start(self) -> WorkerProcess:
        """Make sure that a worker runs, and return it."""
        if self.is_closed:
            raise BrowserError("The browser environment is closed; make a new BrowserEnv.")
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
            self.restart_notice = f"The browser had ended and was started anew: {self.lost_state}."
        worker = self._start_worker()
        if self.is_closed:
            # Closed by another thread meanwhile, which found nothing to end.
            worker.end()
            raise BrowserError("The browser environment was closed while the browser started.")
        self._worker = worker
        tabs, self._tabs = self._tabs, None
        if tabs is not None:
            with contextlib.suppress(BrowserError):
                worker.request({"op": "reopen", **tabs}, START_TIMEOUT_SECONDS)
            self.restart_notice = (
                "The browser was closed while nobody used it, and its tabs were opened again with "
                "their cookies and local storage; history and what was entered are lost."
            )
        return worker

    def suspend(self) -> None:
        """End the worker until the next request, which finds the same tabs open."""
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
        """Send a request to the worker, which is started if none runs."""
        worker = self.start()
        try:
            return worker.request(dict(request), timeout, grace)
        except BrowserTimeoutError:
            worker.needs_ping = True
            raise
        except WorkerGoneError:
            self._refuse_if_closed()
            worker.end(graceful=False)  # it may still look alive, and must not be asked again
            raise
        except BrowserError as error:
            if worker.is_alive():
                raise
            self._refuse_if_closed()
            raise WorkerGoneError(str(error)) from error

    def begin_task(self, task: str, seed: int) -> None:
        """Let the worker, and each one that replaces it, carry out another task of BrowserGym."""
        self._settings = replace(self._settings, task=task, seed=seed)
        if self._worker is not None and self._worker.is_alive():
            self.request({"op": "begin_task", "task": task, "seed": seed}, self._start_timeout)

    def _refuse_if_closed(self) -> None:
        if self.is_closed:
            raise BrowserError("The browser was closed while a step was waiting.")

    def check_alive(self, timeout: float) -> bool:
        """Find out whether worker and browser answer. From any thread."""
        worker = self._worker
        if worker is None or not worker.is_alive():
            return False
        try:
            worker.request({"op": "ping"}, timeout)
        except BrowserError:
            return False
        return True

    def ask_aside(self, request: dict[str, Any], seconds: float) -> Any:
        """Ask for what may take long beside the steps; None if no browser runs. From any thread."""
        worker = self._worker
        if worker is None or not worker.is_alive():
            return None
        return worker.request({**request, "seconds": seconds}, seconds, grace=ASIDE_GRACE_SECONDS)

    def interrupt(self) -> None:
        """Give up what is being waited for. From any thread."""
        worker = self._worker
        if worker is not None:
            worker.interrupt()

    def close(self) -> None:
        """End the worker. From any thread; a request that waits gets an error."""
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
        if self._tempdir is None:
            self._tempdir = TempDir()
        downloads = settings.downloads_dir or str(self._tempdir.downloads)
        settings = replace(settings, downloads_dir=downloads)
        reasons: list[str] = []
        for attempt in range(self._attempts):
            # Root cannot have Chromium's sandbox, and some containers cannot either.
            is_root = getattr(os, "geteuid", lambda: 1)() == 0
            settings = replace(settings, sandbox=not is_root and attempt == 0)
            try:
                worker = WorkerProcess(self._module, self._tempdir)
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
            f"{len(reasons)} attempts. Try it in a terminal, or run `oh-jupyter install-browser`. "
            f"It said: {reasons[-1]}"
        )


class IdleTimer:
    """Calls back, from a thread of its own, some seconds after it was last touched."""

    def __init__(self, seconds: float | None, on_idle: Callable[[], None]) -> None:
        """Prepare; it runs from the first touch on, and never if there are no seconds."""
        self._seconds = seconds
        self._on_idle = on_idle
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._is_closed = False

    def touch(self) -> None:
        """Count the seconds anew."""
        with self._lock:
            self._cancel()
            if self._seconds and not self._is_closed:
                self._timer = start_timer(self._seconds, self._on_idle, "oh-browser-idle")

    def close(self) -> None:
        """Stop for good."""
        with self._lock:
            self._is_closed = True
            self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def checked_seconds(name: str, seconds: float | None) -> float:
    """Check after how many seconds something happens; 0 for never."""
    if seconds is None:
        return 0.0
    # Written like this since NaN is neither.
    if not (isinstance(seconds, int | float) and 0 <= seconds <= threading.TIMEOUT_MAX):
        raise BrowserError(
            f"{name} is {seconds!r}, which is no number of seconds. Give one of 0 or more, "
            "or None for never."
        )
    return seconds
