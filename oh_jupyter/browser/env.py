"""BrowserEnv: a browser to step through, from any thread of any program."""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
import weakref
from collections.abc import Collection
from typing import Any

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.browser.observation import PARTS
from oh_jupyter.browser.worker_process import WorkerGoneError, WorkerProcess
from oh_jupyter.errors import BrowserError, BrowserTimeoutError, ChildStartError

__all__ = ["BrowserEnv"]

START_LIMIT = 45.0
"""Seconds that one attempt to start may take."""
RECOVERY = 5.0
"""Seconds in which a worker has to answer after a step that timed out."""
LOST = "open pages, cookies, history and what was entered are lost"


class BrowserEnv:
    """A browser in a process of its own; it starts with the first step.

    Steps may be asked for from many threads; they are carried out one after the other. The
    process ends with :meth:`close`, at the end of the program, or when the program is killed.
    """

    def __init__(
        self,
        browsergym_eval_env: str | None = None,
        headless: bool = True,
        executable_path: str | os.PathLike[str] | None = None,
        viewport: tuple[int, int] = (1280, 720),
        downloads_dir: str | os.PathLike[str] | None = None,
        start_attempts: int = 5,
        accept_dialogs: bool = False,
    ) -> None:
        """Prepare a browser.

        Args:
            browsergym_eval_env: Name of a BrowserGym task; not supported yet.
            headless: Run without a window.
            executable_path: The browser; None to look for one.
            viewport: Width and height of the page in px.
            downloads_dir: Where finished downloads are put; None for a temporary directory.
            start_attempts: How often to try to start the browser.
            accept_dialogs: Accept confirm and prompt dialogs instead of dismissing them.

        Raises:
            BrowserError: An evaluation task was asked for.
        """
        if browsergym_eval_env is not None:
            raise BrowserError(
                f"The evaluation mode is not available, so {browsergym_eval_env!r} cannot be run. "
                "Leave browsergym_eval_env out."
            )
        self.headless = headless
        self.executable_path = executable_path
        self.viewport = viewport
        self.downloads_dir = os.fspath(downloads_dir) if downloads_dir is not None else ""
        self.start_attempts = start_attempts
        self.accept_dialogs = accept_dialogs
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._turn = threading.RLock()
        self._worker: WorkerProcess | None = None
        self._doubtful = False
        self._lost = ""
        self._closed = False
        _living.add(self)

    def __enter__(self) -> BrowserEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the browser now instead of with the first step.

        Raises:
            BrowserNotFoundError: There is no browser on this machine.
            BrowserError: It does not start, or the environment was closed.
        """
        with self._turn:
            self._ensure_worker()

    def step(
        self, action: str, timeout: float = 120, include: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Carry out browser actions and observe the page.

        Args:
            action: One or more calls of BrowserGym's high-level action language.
            timeout: Seconds until an answer is given up.
            include: Which parts to compute, of ``observation.PARTS``; None for all of them.

        Returns:
            The observation: BrowserGym's keys, JSON-serialisable, and two more: ``notices``
            (dialogs, crashes and the like) and ``downloads`` (those that are finished).

        Raises:
            BrowserTimeoutError: No answer in time; the step was cancelled.
            BrowserNotFoundError: There is no browser on this machine.
            BrowserError: It does not start, does not answer, or the environment was closed.
        """
        parts = list(PARTS) if include is None else list(include)
        unknown = [part for part in parts if part not in PARTS]
        if unknown:
            raise BrowserError(
                f"There is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}."
            )
        with self._turn:
            worker = self._ensure_worker()
            lost, self._lost = self._lost, ""
            # The observation after the calls needs a share of the time, too.
            limit = max(timeout - 10, timeout / 2)
            request = {"op": "step", "action": action, "include": parts, "limit": limit}
            try:
                observation: dict[str, Any] = worker.ask(request, timeout)
            except BrowserTimeoutError:
                self._doubtful = True
                raise
            except WorkerGoneError:
                return self._after_death(action, parts, timeout)
            except BrowserError:
                if worker.is_alive():
                    raise
                return self._after_death(action, parts, timeout)
        if lost:
            observation["notices"].insert(0, lost)
            if observation["last_action_error"]:
                observation["last_action_error"] += f" {lost}"
        return observation

    def check_alive(self, timeout: float = 60) -> bool:
        """Find out whether the browser answers, also while a step is running.

        Args:
            timeout: Seconds to wait for the answer.

        Returns:
            Whether it does; False if it was not started.
        """
        worker = self._worker
        if worker is None or not worker.is_alive():
            return False
        try:
            worker.ask({"op": "ping"}, timeout)
        except BrowserError:
            return False
        return True

    def close(self) -> None:
        """End the browser and its process. More than once does no harm."""
        self._closed = True
        # Not under the lock: closing ends a step that another thread waits for.
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _after_death(self, action: str, parts: list[str], timeout: float) -> dict[str, Any]:
        """Start anew after browser or worker ended during a step, and say so."""
        if self._closed:
            raise BrowserError("The browser was closed while a step was waiting.")
        worker = self._ensure_worker()
        self._lost = ""
        request = {"op": "step", "action": "noop(0)", "include": parts, "limit": timeout}
        observation: dict[str, Any] = worker.ask(request, timeout)
        reason = (
            "The browser ended unexpectedly during this action and was started anew: "
            f"{LOST}. The action was not repeated."
        )
        observation["last_action"] = action
        observation["last_action_error"] = reason
        observation["notices"].insert(0, reason)
        return observation

    def _ensure_worker(self) -> WorkerProcess:
        if self._closed:
            raise BrowserError("The browser environment is closed; make a new BrowserEnv.")
        worker = self._worker
        if worker is not None and self._doubtful and worker.is_alive():
            self._doubtful = False
            try:
                worker.ask({"op": "ping"}, RECOVERY)
            except BrowserError:
                worker.end(polite=False)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:
            worker.end()
            self._lost = f"The browser had ended and was started anew: {LOST}."
        self._doubtful = False
        worker = self._start_worker()
        if self._closed:
            # Closed by another thread meanwhile, which found nothing to end.
            worker.end()
            raise BrowserError("The browser environment was closed while the browser started.")
        self._worker = worker
        return worker

    def _start_worker(self) -> WorkerProcess:
        settings: dict[str, Any] = {
            "executable": find_executable(self.executable_path),
            "headless": self.headless,
            "viewport": list(self.viewport),
            "downloads_dir": self._downloads(),
            "accept_dialogs": self.accept_dialogs,
        }
        reasons: list[str] = []
        for attempt in range(max(1, self.start_attempts)):
            # Root cannot have Chromium's sandbox, and some containers cannot either.
            is_root = getattr(os, "geteuid", lambda: 1)() == 0
            settings["sandbox"] = not is_root and attempt == 0
            try:
                worker = WorkerProcess()
            except ChildStartError as error:
                reasons.append(str(error))
                continue
            try:
                worker.ask({"op": "start", "settings": settings}, START_LIMIT)
            except BrowserError as error:
                reasons.append(f"{error} {worker.complaints()}".strip())
                worker.end()
                continue
            except BaseException:
                worker.end()
                raise
            return worker
        raise BrowserError(
            f"The browser {settings['executable']} did not start in {len(reasons)} attempts. "
            f"Try it in a terminal, or run `oh-jupyter install-browser`. It said: {reasons[-1]}"
        )

    def _downloads(self) -> str:
        if not self.downloads_dir:
            self._temporary = tempfile.TemporaryDirectory(prefix="oh_jupyter_downloads_")
            self.downloads_dir = self._temporary.name
        return self.downloads_dir


_living: weakref.WeakSet[BrowserEnv] = weakref.WeakSet()


def _close_all() -> None:
    for env in list(_living):
        env.close()


atexit.register(_close_all)
