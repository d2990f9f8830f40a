"""Keeps a worker process running: starts it, replaces it when it died, and says what was lost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from oh_jupyter.browser.channel.protocol import LaunchSettings
from oh_jupyter.browser.channel.tempdir import TempDir
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker_process import (
    WorkerGoneError,
    WorkerProcess,
    WorkerSettingsError,
)
from oh_jupyter.errors import BrowserError, BrowserTimeoutError, ChildStartError

__all__ = ["Supervisor"]

START_TIMEOUT_SECONDS = 45.0
"""Seconds that one attempt to start may take."""
TASK_START_TIMEOUT_SECONDS = 180.0
"""The same where a task of BrowserGym is set up with it, which may log in to several sites."""
PING_TIMEOUT_SECONDS = 5.0
"""Seconds in which a worker has to answer after a request that timed out."""
PAGES_LOST = "open pages, history and what was entered are lost"


class Supervisor:
    """One worker at a time; not safe to use from several threads, except where said.

    Attributes:
        restart_notice: What the last restart has lost and nobody was told yet, or "".
        is_closed: Whether no worker will be started any more.
    """

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
        self._needs_ping = False

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
        if worker is not None and self._needs_ping and worker.is_alive():
            self._needs_ping = False
            try:
                worker.request({"op": "ping"}, PING_TIMEOUT_SECONDS)
            except BrowserError:
                worker.end(graceful=False)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.end()
            self.restart_notice = f"The browser had ended and was started anew: {self.lost_state}."
        self._needs_ping = False
        worker = self._start_worker()
        if self.is_closed:
            # Closed by another thread meanwhile, which found nothing to end.
            worker.end()
            raise BrowserError("The browser environment was closed while the browser started.")
        self._worker = worker
        return worker

    def request(self, request: Mapping[str, Any], timeout: float, grace: float = 0.0) -> Any:
        """Send a request to the worker, which is started if none runs."""
        worker = self.start()
        try:
            return worker.request(dict(request), timeout, grace)
        except BrowserTimeoutError:
            self._needs_ping = True
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
            worker.end()
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
