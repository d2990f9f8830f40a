"""Keeps a worker process running: starts it, replaces it when it died, and says what was lost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from oh_jupyter.browser.channel.tempdir import Scratch
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.worker_process import (
    WorkerGoneError,
    WorkerProcess,
    WorkerRefusedError,
)
from oh_jupyter.errors import BrowserError, BrowserTimeoutError, ChildStartError

__all__ = ["Supervisor"]

START_LIMIT = 45.0
"""Seconds that one attempt to start may take."""
TASK_LIMIT = 180.0
"""The same where a task of BrowserGym is set up with it, which may log in to several sites."""
RECOVERY = 5.0
"""Seconds in which a worker has to answer after a request that timed out."""
GONE = "open pages, history and what was entered are lost"


class Supervisor:
    """One worker at a time; not safe to use from several threads, except where said.

    Attributes:
        lost: What the last replacement of a worker has lost and nobody was told yet, or "".
        is_closed: Whether no worker will be started any more.
    """

    def __init__(self, module: str, settings: Mapping[str, Any], attempts: int) -> None:
        """Prepare.

        Args:
            module: The worker's module.
            settings: What the worker needs, as JSON: the fields of ``launch.Settings`` except
                ``sandbox`` and ``downloads_dir``, which may be "".
            attempts: How often to try to start it.
        """
        self.lost = ""
        self.is_closed = False
        self._module = module
        self._settings = dict(settings)
        self._attempts = max(1, attempts)
        self._start_limit = TASK_LIMIT if "task" in settings else START_LIMIT
        self._worker: WorkerProcess | None = None
        self._scratch: Scratch | None = None
        self._is_doubtful = False

    @property
    def losses(self) -> str:
        """What goes with a browser that ends unexpectedly, in half a sentence."""
        settings = self._settings
        if settings.get("task"):
            return f"cookies, {GONE}, and the task's episode began anew, without rewards"
        if settings["cdp_url"]:
            return "what was under way is lost; the running browser keeps its tabs and cookies"
        if settings["user_data_dir"]:
            return (
                f"{GONE}; the profile keeps cookies and local storage, except session cookies and "
                "what was set in the last half minute"
            )
        if settings["storage_state"]:
            return f"{GONE}; cookies and local storage are those of the storage state again"
        return f"cookies, {GONE}"

    def start(self) -> WorkerProcess:
        """Make sure that a worker runs.

        Returns:
            The worker.

        Raises:
            BrowserNotFoundError: There is no browser on this machine.
            BrowserError: It does not start, or the environment was closed.
        """
        if self.is_closed:
            raise BrowserError("The browser environment is closed; make a new BrowserEnv.")
        worker = self._worker
        if worker is not None and self._is_doubtful and worker.is_alive():
            self._is_doubtful = False
            try:
                worker.ask({"op": "ping"}, RECOVERY)
            except BrowserError:
                worker.end(polite=False)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.end()
            self.lost = f"The browser had ended and was started anew: {self.losses}."
        self._is_doubtful = False
        worker = self._start_worker()
        if self.is_closed:
            # Closed by another thread meanwhile, which found nothing to end.
            worker.end()
            raise BrowserError("The browser environment was closed while the browser started.")
        self._worker = worker
        return worker

    def ask(self, request: Mapping[str, Any], timeout: float) -> Any:
        """Send a request to the worker, which is started if none runs.

        Args:
            request: ``op``, and what the operation needs.
            timeout: Seconds to wait for the answer.

        Returns:
            The answer.

        Raises:
            WorkerGoneError: The worker died meanwhile.
            BrowserTimeoutError: No answer in time; the request was cancelled.
            BrowserError: It could not be done, or no worker could be started.
        """
        worker = self.start()
        try:
            return worker.ask(dict(request), timeout)
        except BrowserTimeoutError:
            self._is_doubtful = True
            raise
        except WorkerGoneError:
            self._refuse_if_closed()
            worker.end(polite=False)  # it may still look alive, and must not be asked again
            raise
        except BrowserError as error:
            if worker.is_alive():
                raise
            self._refuse_if_closed()
            raise WorkerGoneError(str(error)) from error

    def change(self, settings: Mapping[str, Any]) -> None:
        """Let the worker, and each one that replaces it, go on with other settings.

        Args:
            settings: Those that change.

        Raises:
            WorkerGoneError: The worker died meanwhile; the next one has the new settings.
            BrowserTimeoutError: No answer in time.
            BrowserError: It cannot be done.
        """
        self._settings.update(settings)
        if self._worker is not None and self._worker.is_alive():
            self.ask({"op": "change", "settings": dict(settings)}, self._start_limit)

    def _refuse_if_closed(self) -> None:
        if self.is_closed:
            raise BrowserError("The browser was closed while a step was waiting.")

    def answers(self, timeout: float) -> bool:
        """Find out whether worker and browser answer. From any thread.

        Args:
            timeout: Seconds to wait.

        Returns:
            Whether they do; False if none was started.
        """
        worker = self._worker
        if worker is None or not worker.is_alive():
            return False
        try:
            worker.ask({"op": "ping"}, timeout)
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
        if self._scratch is not None:
            self._scratch.close()

    def _start_worker(self) -> WorkerProcess:
        settings = dict(self._settings)
        if not settings["cdp_url"]:
            settings["executable"] = find_executable(settings["executable"] or None)
        if self._scratch is None:
            self._scratch = Scratch()
        settings["downloads_dir"] = settings["downloads_dir"] or str(self._scratch.downloads)
        reasons: list[str] = []
        for attempt in range(self._attempts):
            # Root cannot have Chromium's sandbox, and some containers cannot either.
            is_root = getattr(os, "geteuid", lambda: 1)() == 0
            settings["sandbox"] = not is_root and attempt == 0
            try:
                worker = WorkerProcess(self._module, self._scratch)
            except ChildStartError as error:
                reasons.append(str(error))
                continue
            try:
                worker.ask({"op": "start", "settings": settings}, self._start_limit)
            except WorkerRefusedError as error:
                worker.end()
                raise BrowserError(str(error)) from None
            except BrowserError as error:
                reasons.append(f"{error} {worker.complaints()}".strip())
                worker.end()
                continue
            except BaseException:
                worker.end()
                raise
            return worker
        raise BrowserError(
            f"The browser {settings['cdp_url'] or settings['executable']} did not start in "
            f"{len(reasons)} attempts. Try it in a terminal, or run `oh-jupyter install-browser`. "
            f"It said: {reasons[-1]}"
        )
