"""BrowserEnv: a browser that any thread of any program can step through."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from oh_jupyter.browser.channel.pipe import PARTS, RECORDS, LaunchSettings
from oh_jupyter.browser.evaluation.gym_tasks import is_gym_task
from oh_jupyter.browser.evaluation.tasks import Evaluation, RemoteTaskPage, Task, find_task
from oh_jupyter.browser.storage_state import read_state, write_state
from oh_jupyter.browser.supervisor import IdleTimer, Supervisor, WorkerGoneError, checked_seconds
from oh_jupyter.errors import BrowserError
from oh_jupyter.events.masking import SecretMasker

WORKER_MODULE, GYM_WORKER_MODULE = (
    "oh_jupyter.browser.worker.main",
    "oh_jupyter.browser.evaluation.gym_worker",
)
OPERATION_TIMEOUT_SECONDS = 60.0
"""Timeout of all requests except steps."""
PERSON_NOTICE = "A person has used the browser since the last step; the page may have changed."


class BrowserEnv:
    """Browser in a separate process, which starts with the first step.

    Any thread may request steps; they run one at a time. The process ends with :meth:`close`,
    when the program ends, or when the program is killed.
    """

    def __init__(
        self,
        browsergym_eval_env: str | Task | None = None,
        headless: bool = True,
        executable_path: str | os.PathLike[str] | None = None,
        viewport: tuple[int, int] = (1280, 720),
        downloads_dir: str | os.PathLike[str] | None = None,
        start_attempts: int = 5,
        accept_dialogs: bool = False,
        *,
        seed: int | None = None,
        storage_state: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        user_data_dir: str | os.PathLike[str] | None = None,
        device: str | None = None,
        har_path: str | os.PathLike[str] | None = None,
        cdp_url: str | None = None,
        allowed_origins: Iterable[str] = (),
        blocked_origins: Iterable[str] = (),
        secrets: Iterable[str] = (),
        idle_seconds: float | None = None,
    ) -> None:
        """Prepare a browser.

        Args:
            browsergym_eval_env: Task to evaluate: the name of one of ``tasks.TASKS``, such as
                ``oh_jupyter/click-button``; the name of a BrowserGym task, such as
                ``browsergym/miniwob.click-test``, which needs the extra ``eval``; or your own
                task object.
            headless: Run without a window.
            executable_path: Browser executable; None to search for one.
            viewport: Width and height of the page in px.
            downloads_dir: Directory for finished downloads; None for a temporary one.
            start_attempts: Maximum number of attempts to start the browser.
            accept_dialogs: Accept confirm and prompt dialogs instead of dismissing them.
            seed: Seed of the task's random choices.
            storage_state: Initial cookies and local storage, as :meth:`storage_state` returns
                or saves them.
            user_data_dir: Directory of a persistent profile; only one browser at a time can
                use it.
            device: Name of a device in Playwright's list to emulate, such as ``iPhone 15``.
            har_path: Archive of all requests and responses, including secrets, written when the
                browser closes: ``….har``, or ``….zip`` with the response bodies as files.
            cdp_url: DevTools address of a running browser to use instead of starting one.
            allowed_origins: The only origins that the browser may reach, such as
                ``https://*.example.org``; empty for all.
            blocked_origins: Origins that the browser may not reach.
            secrets: Texts to hide in all observations and errors.
            idle_seconds: Seconds without a step after which the browser closes. The next step
                restores its tabs, cookies and local storage. None for never.
            BrowserError: A task, origin, storage state or number of seconds is invalid.
        """
        settings = LaunchSettings(
            executable=os.fspath(executable_path or ""),
            headless=headless,
            viewport=viewport,
            downloads_dir=os.fspath(downloads_dir or ""),
            accept_dialogs=accept_dialogs,
            storage_state=read_state(storage_state),
            user_data_dir=os.fspath(user_data_dir or ""),
            device=device or "",
            har_path=os.path.abspath(har_path) if har_path else "",
            cdp_url=cdp_url or "",
            allowed_origins=tuple(allowed_origins),
            blocked_origins=tuple(blocked_origins),
            seed=seed,
        )
        _ = settings.origins  # raises BrowserError for an invalid one
        task, module = browsergym_eval_env, WORKER_MODULE
        self._is_gym = False
        self._evaluation: Evaluation | None = None
        if isinstance(task, str) and is_gym_task(task):
            self._is_gym, module = True, GYM_WORKER_MODULE
            settings = replace(settings, task=task)
        elif task is not None:
            task = find_task(task) if isinstance(task, str) else task
            # Weak, so that a browser without other references can be collected.
            env = weakref.proxy(self)
            page = RemoteTaskPage(lambda operation, **details: env._request(operation, **details))
            self._evaluation = Evaluation(task, seed or 0, page)
        self._masker = SecretMasker()
        self._masker.add(secrets)
        self._supervisor = Supervisor(module, settings, start_attempts)
        self._step_lock = threading.RLock()
        self._current_token: object = None
        self._cancelled_token: object = None
        self._person_notice = ""
        self._idle = IdleTimer(checked_seconds("idle_seconds", idle_seconds), self._suspend)
        _living.add(self)

    def __enter__(self) -> BrowserEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def evaluation(self) -> Evaluation | None:
        """Evaluation of the current task; None without a task or with a BrowserGym task."""
        return self._evaluation

    def start(self) -> None:
        """Start the browser now instead of with the first step.

        Raises:
            BrowserNotFoundError: No browser is installed.
            BrowserError: The browser does not start, or the environment is closed.
        """
        with self._step_lock:
            self._supervisor.start()
            if self._evaluation is not None:
                self._evaluation.begin()

    def step(
        self,
        action: str,
        timeout: float = 120,
        include: Collection[str] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        nearby: bool = False,
        token: object = None,
        files: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Run browser actions and observe the page.

        Args:
            action: One or more calls of BrowserGym's high-level action language; in evaluation
                mode also ``GET_EVAL_GOAL`` and ``GET_EVAL_REWARDS``.
            timeout: Seconds that the calls may take. The observation may take as long again,
                but at least 1 s and at most 30 s.
            include: Parts of ``protocol.PARTS`` and ``protocol.RECORDS`` to compute; None for
                all of ``PARTS``.
            cwd: Base of relative paths of files to upload; None for the current directory.
            nearby: Describe only the viewport and one screen around it. This applies to pages
                of more than 6,000 elements or a million characters, whose text then comes in
                pieces, and to trees longer than 30,000 characters. ``left_out`` and
                ``text_range`` tell how much is missing.
            token: Identifier of this step for :meth:`interrupt`.
            files: Limits of the local files that pages load from now on, as arguments of
                ``LocalFiles``; None leaves them as they are.

        Returns:
            The observation with BrowserGym's keys as JSON values, ``notices`` (such as dialogs
            and crashes) and ``downloads`` (those that have finished).

        Raises:
            BrowserTimeoutError: The timeout expired; the step was cancelled.
            BrowserNotFoundError: No browser is installed.
            BrowserError: The browser does not start or respond, or the environment is closed.
        """
        parts = list(PARTS) if include is None else list(include)
        unknown = [part for part in parts if part not in PARTS and part not in RECORDS]
        if unknown:
            raise BrowserError(
                f"Unknown part {unknown[0]!r}; the parts are {', '.join(PARTS + RECORDS)}."
            )
        with self._step_lock:
            self._current_token = token
            try:
                if token is not None and token is self._cancelled_token:
                    raise BrowserError("The step was cancelled.")
                details = {"cwd": os.fspath(cwd or os.getcwd()), "nearby": nearby}
                if files is not None:
                    details["files"] = dict(files)
                observation = self._step(action, parts, timeout, details)
            except BrowserError as error:
                raise self._masked_error(error) from None
            finally:
                self._current_token = None
                self._idle.touch()
        return self._masker.masked(observation)

    def _step(
        self, action: str, parts: list[str], timeout: float, details: dict[str, Any]
    ) -> dict[str, Any]:
        evaluation = self._evaluation
        request = {"op": "step", "action": action, "include": parts, "limit": timeout, **details}
        if evaluation is not None:
            evaluation.begin()
            result = evaluation.answer(action)
            if result is not None:
                return result
        try:
            self._supervisor.start()
            notice = self._take_restart_notice()
            observation: dict[str, Any] = self._supervisor.request(
                request, timeout, grace=observation_seconds(timeout)
            )
        except WorkerGoneError:
            return self._restart_after_death(action, parts, timeout)
        if evaluation is not None:
            evaluation.judge(observation)
        person_notice, self._person_notice = self._person_notice, ""
        if person_notice:
            observation["notices"].insert(0, person_notice)
        if notice:
            observation["notices"].insert(0, notice)
            if observation["last_action_error"]:
                observation["last_action_error"] += f" {notice}"
        return observation

    def _take_restart_notice(self) -> str:
        """Return and clear the notice of a restart, after which the task is set up again."""
        notice, self._supervisor.restart_notice = self._supervisor.restart_notice, ""
        if notice and self._evaluation is not None:
            self._evaluation.resume()
        return notice

    def _restart_after_death(self, action: str, parts: list[str], timeout: float) -> dict[str, Any]:
        """Restart the browser after it or its worker ended during a step, and report it."""
        noop = {"op": "step", "action": "noop(0)", "include": parts, "limit": timeout, "cwd": "/"}
        self._supervisor.start()
        self._take_restart_notice()
        observation: dict[str, Any] = self._supervisor.request(noop, timeout)
        if self._evaluation is not None:
            self._evaluation.judge(observation)
        reason = (
            "The browser exited unexpectedly during this action and was restarted: "
            f"{self._supervisor.lost_state}. The action was not repeated."
        )
        observation |= {"last_action": action, "last_action_error": f"Error: {reason}"}
        observation["notices"].insert(0, reason)
        return observation

    def act(self, action: str, timeout: float = 60) -> str:
        """Run a person's browser actions without observing the page.

        The notices of the next step report it.

        Args:
            action: Calls as for :meth:`step`.
            timeout: Seconds that the calls may take.

        Returns:
            The error of the first call that failed, or "".

        Raises:
            BrowserError: The browser does not start or respond.
        """
        details = {"action": action, "limit": timeout, "cwd": os.getcwd()}
        self._person_notice = PERSON_NOTICE
        return self._masker.masked_text(str(self._request("act", **details)))

    def marks(self) -> list[dict[str, Any]]:
        """List the elements in the viewport that can be acted on.

        Returns:
            The ``bid`` of each element and its ``bbox`` in the viewport: x, y, width, height.

        Raises:
            BrowserError: The browser does not start or respond.
        """
        marks: list[dict[str, Any]] = self._request("marks")
        return marks

    def watch(self, known: int = -1, seconds: float = 0) -> dict[str, Any] | None:
        """Wait for the next picture of the active tab. Thread-safe; pictures show secrets.

        Args:
            known: ``number`` of the last picture that the caller has.
            seconds: Seconds to wait for a newer one.

        Returns:
            ``number``, ``frame`` (a JPEG as base64), ``width`` and ``height`` of the viewport,
            ``scroll``, ``url`` and ``tabs``; None if no browser runs.
        """
        self._idle.touch()
        with suppress(BrowserError):
            view = self._supervisor.ask_aside({"op": "watch", "known": known}, seconds)
            return view and {**self._masker.masked({**view, "frame": ""}), "frame": view["frame"]}
        return None

    def pick(self, timeout: float = 300) -> str:
        """Wait until a person clicks an element of the active tab, in a window or a panel.

        Args:
            timeout: Seconds to wait.

        Returns:
            The element's bid; the click does not reach the page.

        Raises:
            BrowserError: No element was clicked in time, or the browser does not start.
        """
        self.start()
        backend_id = self._supervisor.ask_aside({"op": "pick"}, timeout)
        return str(self._request("bid_of", backend_id=backend_id))

    def check_alive(self, timeout: float = 60) -> bool:
        """Check that the browser responds, even while a step is running.

        Args:
            timeout: Seconds to wait for the response.

        Returns:
            Whether it responds; False if it was not started.
        """
        return self._supervisor.check_alive(timeout)

    def interrupt(self, token: object = None) -> None:
        """Cancel a step that another thread waits for; the browser keeps running.

        Args:
            token: Token of the step, which may still be queued; None for the running step.
        """
        self._cancelled_token = token
        if token is None or token is self._current_token:
            self._supervisor.interrupt()

    def close(self) -> None:
        """Stop the browser and its process; repeated calls are harmless."""
        self._idle.close()
        # Without the lock, since closing cancels a step that another thread waits for.
        self._supervisor.close()

    def _suspend(self) -> None:
        if self._evaluation is not None:
            return  # the task would have to restart
        if self._step_lock.acquire(blocking=False):  # a running step restarts the timer
            try:
                self._supervisor.suspend()
            finally:
                self._step_lock.release()

    def mask(self, secrets: Iterable[str]) -> None:
        """Hide texts in all future observations and errors; pictures still show them.

        Args:
            secrets: Texts to hide.
        """
        self._masker.add(secrets)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript in the active page.

        Args:
            expression: An expression or a function.
            argument: Argument of the function, a JSON value.

        Returns:
            The result.

        Raises:
            BrowserError: The JavaScript threw an error, or the browser does not respond.
        """
        return self._request("evaluate", expression=expression, argument=argument)

    def storage_state(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Read cookies and local storage, so that later browsers start logged in.

        Args:
            path: File to save them to; only its owner can read it.

        Returns:
            Cookies and local storage for ``BrowserEnv(storage_state=…)``.

        Raises:
            BrowserError: The browser does not respond, or the file cannot be written.
        """
        state: dict[str, Any] = self._request("storage_state")
        if path is not None:
            write_state(state, path)
        return state

    @contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Record a ``with`` block, including secrets, for ``playwright show-trace``.

        Args:
            path: Archive to write at the end, ``….zip``.

        Yields:
            Nothing.

        Raises:
            BrowserError: The browser does not respond, or a trace is already running.
        """
        self._request("start_trace")
        try:
            yield
        finally:
            self._request("stop_trace", path=os.path.abspath(path))

    def renew(self) -> None:
        """Reset the browser to one blank tab without cookies."""
        self._request("renew")

    def begin_task(self, task: str | Task, seed: int) -> None:
        """Start an episode of another task, of the same kind as the previous one.

        Args:
            task: Name of a BrowserGym task, or a task object.
            seed: Seed of its random choices.

        Raises:
            BrowserError: The task cannot be set up, or this browser has no task.
        """
        if isinstance(task, str):
            self._supervisor.begin_task(task, seed)
            return
        if self._evaluation is None:
            raise BrowserError(
                "This browser has no task. Create one with BrowserEnv(browsergym_eval_env=…)."
            )
        self.renew()
        self._evaluation.restart(task, seed)

    def _request(self, operation: str, **details: Any) -> Any:
        if self._is_gym:
            raise BrowserError(f"{operation} is not available with a BrowserGym task.")
        with self._step_lock:
            try:
                return self._supervisor.request(
                    {"op": operation, **details}, OPERATION_TIMEOUT_SECONDS
                )
            except BrowserError as error:
                raise self._masked_error(error) from None
            finally:
                self._idle.touch()

    def _masked_error(self, error: BrowserError) -> BrowserError:
        """Hide secrets in an error's message."""
        message = self._masker.masked_text(str(error))
        return error if message == str(error) else type(error)(message)


def observation_seconds(timeout: float) -> float:
    """Return the seconds that an observation may take after calls with that timeout."""
    return max(1.0, min(timeout, 30.0))


_living: weakref.WeakSet[BrowserEnv] = weakref.WeakSet()


def _close_all() -> None:
    for env in list(_living):
        env.close()


atexit.register(_close_all)
