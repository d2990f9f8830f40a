"""BrowserEnv: a browser to step through, from any thread of any program."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from oh_jupyter.browser.channel.addresses import OriginFilter
from oh_jupyter.browser.channel.protocol import PARTS, RECORDS, LaunchSettings
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
"""For anything but a step."""
MAX_RECORDED_ACTIONS = 1000
PERSON_NOTICE = "A person has used the browser since the last step; the page may be another one."


class BrowserEnv:
    """A browser in a process of its own; it starts with the first step.

    Steps may be asked for from many threads; they are carried out one after the other. The
    process ends with :meth:`close`, at the end of the program, or when the program is killed.
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
        video_path: str | os.PathLike[str] | None = None,
        cdp_url: str | None = None,
        allowed_origins: Iterable[str] = (),
        blocked_origins: Iterable[str] = (),
        secrets: Iterable[str] = (),
        idle_seconds: float | None = None,
        freeze_seconds: float | None = None,
    ) -> None:
        """Prepare a browser.

        Args:
            browsergym_eval_env: A task to be evaluated on: one of ``tasks.TASKS`` by its name,
                such as ``oh_jupyter/click-button``; a task of BrowserGym, such as
                ``browsergym/miniwob.click-test``, which needs the extra ``eval``; or a task
                object of your own.
            headless: Run without a window.
            executable_path: The browser; None to look for one.
            viewport: Width and height of the page in px.
            downloads_dir: Where finished downloads are put; None for a temporary directory.
            start_attempts: How often to try to start the browser.
            accept_dialogs: Accept confirm and prompt dialogs instead of dismissing them.
            seed: What the random choices of the task begin with.
            storage_state: Cookies and local storage to begin with, as :meth:`storage_state`
                returns them or saves them to a file.
            user_data_dir: Folder of a profile that is kept; one browser at a time can use it.
            device: Name of a device of Playwright's list to be, such as ``iPhone 15``.
            har_path: Archive of all requests and answers, secrets too, to be written when the
                browser is closed: ``….har``, or ``….zip`` with what was answered beside it.
            video_path: Video of what the active tab shows, ``….webm``; one that is there already
                is kept, and the next gets a number. Not with tasks of BrowserGym.
            cdp_url: DevTools address of a running browser to use instead of starting one.
            allowed_origins: The only origins that may be reached, such as
                ``https://*.example.org``; empty for all.
            blocked_origins: Origins that may not be reached.
            secrets: Texts that are hidden in all observations and errors.
            idle_seconds: After how long without a step the browser is closed until the next one,
                which finds its tabs, cookies and local storage again; None for never.
            freeze_seconds: The same until the pages of a headless browser stand still meanwhile.

        Raises:
            BrowserError: A task, origin, storage state or number of seconds cannot be used.
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
            video_path=os.path.abspath(video_path) if video_path else "",
            freeze_seconds=checked_seconds("freeze_seconds", freeze_seconds),
            cdp_url=cdp_url or "",
            allowed_origins=tuple(allowed_origins),
            blocked_origins=tuple(blocked_origins),
            seed=seed,
        )
        OriginFilter(settings.allowed_origins, settings.blocked_origins)
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
        self._recorded: deque[str] = deque(maxlen=MAX_RECORDED_ACTIONS)
        _living.add(self)

    def __enter__(self) -> BrowserEnv:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def evaluation(self) -> Evaluation | None:
        """The running evaluation of a task that is not BrowserGym's, or None."""
        return self._evaluation

    def start(self) -> None:
        """Start the browser now instead of with the first step.

        Raises:
            BrowserNotFoundError: There is no browser on this machine.
            BrowserError: It does not start, or the environment was closed.
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
    ) -> dict[str, Any]:
        """Carry out browser actions and observe the page.

        Args:
            action: One or more calls of BrowserGym's high-level action language; in evaluation
                mode also ``GET_EVAL_GOAL`` and ``GET_EVAL_REWARDS``.
            timeout: Seconds that the calls may take; the observation afterwards may take the
                same again, at least 1 and at most 30.
            include: Which parts to compute, of ``protocol.PARTS`` and ``protocol.RECORDS``;
                None for all of the former.
            cwd: Where relative paths of files to upload begin; None for the current directory.
            nearby: Describe only what is in the viewport and a screen around it: of a page of
                more than 6,000 elements or a million characters (its text then comes in pieces),
                and of a longer tree than 30,000; ``left_out`` and ``text_range`` say what is not.
            token: What :meth:`interrupt` knows this step by.

        Returns:
            The observation: BrowserGym's keys, JSON-serialisable, and two more: ``notices``
            (dialogs, crashes and the like) and ``downloads`` (those that are finished).

        Raises:
            BrowserTimeoutError: No answer in time; the step was cancelled.
            BrowserNotFoundError: There is no browser on this machine.
            BrowserError: It does not start, does not answer, or the environment was closed.
        """
        parts = list(PARTS) if include is None else list(include)
        unknown = [part for part in parts if part not in PARTS and part not in RECORDS]
        if unknown:
            raise BrowserError(
                f"There is no part {unknown[0]!r}; the parts are {', '.join(PARTS + RECORDS)}."
            )
        with self._step_lock:
            self._current_token = token
            self._recorded.append(action)
            try:
                if token is not None and token is self._cancelled_token:
                    raise BrowserError("The step was cancelled.")
                details = {"cwd": os.fspath(cwd or os.getcwd()), "nearby": nearby}
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
            answer = evaluation.answer(action)
            if answer is not None:
                return answer
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
        """Take what was lost when the browser was replaced; its task is set up again."""
        notice, self._supervisor.restart_notice = self._supervisor.restart_notice, ""
        if notice and self._evaluation is not None:
            self._evaluation.resume()
        return notice

    def _restart_after_death(self, action: str, parts: list[str], timeout: float) -> dict[str, Any]:
        """Start anew after browser or worker ended during a step, and say so."""
        noop = {"op": "step", "action": "noop(0)", "include": parts, "limit": timeout, "cwd": "/"}
        self._supervisor.start()
        self._take_restart_notice()
        observation: dict[str, Any] = self._supervisor.request(noop, timeout)
        if self._evaluation is not None:
            self._evaluation.judge(observation)
        reason = (
            "The browser ended unexpectedly during this action and was started anew: "
            f"{self._supervisor.lost_state}. The action was not repeated."
        )
        observation |= {"last_action": action, "last_action_error": f"Error: {reason}"}
        observation["notices"].insert(0, reason)
        return observation

    def act(self, action: str, timeout: float = 60) -> str:
        """Carry out browser actions of a person who watches the page, without observing it.

        The next step's notices tell of it.

        Args:
            action: As for :meth:`step`.
            timeout: Seconds that the calls may take.

        Returns:
            Why one failed, or "".

        Raises:
            BrowserError: The browser does not start, or does not answer.
        """
        self._recorded.append(action)
        details = {"action": action, "limit": timeout, "cwd": os.getcwd()}
        self._person_notice = PERSON_NOTICE
        return self._masker.masked_text(str(self._request("act", **details)))

    def marks(self) -> list[dict[str, Any]]:
        """List what can be acted on in the viewport.

        Returns:
            For each element its ``bid``, and its ``bbox`` in the viewport: x, y, width, height.

        Raises:
            BrowserError: The browser does not start, or does not answer.
        """
        found: list[dict[str, Any]] = self._request("marks")
        return found

    def watch(self, known: int = -1, seconds: float = 0) -> dict[str, Any] | None:
        """Wait for another picture of the active tab; it shows secrets. From any thread.

        Args:
            known: ``number`` of the picture that is known.
            seconds: How long to wait for another one.

        Returns:
            ``number``, ``frame`` (a JPEG as base64), ``width`` and ``height`` of the viewport,
            ``scroll``, ``url`` and ``tabs``; None if no browser runs.
        """
        self._idle.touch()
        with suppress(BrowserError):
            seen = self._supervisor.ask_aside({"op": "watch", "known": known}, seconds)
            return seen and {**self._masker.masked({**seen, "frame": ""}), "frame": seen["frame"]}
        return None

    def pick(self, timeout: float = 300) -> str:
        """Wait until a person points at an element of the active tab, in a window or a panel.

        Args:
            timeout: Seconds to wait.

        Returns:
            Its bid; the click does not reach the page.

        Raises:
            BrowserError: Nobody did, or no browser runs.
        """
        self.start()
        found = self._supervisor.ask_aside({"op": "pick"}, timeout)
        return str(self._request("bid_of", backend_id=found))

    def start_script(self) -> None:
        """Begin to record what is done in the pages, by whomever; a BrowserError if it does."""
        self._request("start_script")
        self._recorded.clear()

    def script(self, *, stop: bool = True) -> tuple[str, str]:
        """Tell what was recorded, and stop recording.

        Args:
            stop: Whether to stop.

        Returns:
            A Playwright script, and the same as calls of the action language.
        """
        script = str(self._request("read_script", stop=stop))
        calls = "\n".join(self._recorded)
        return self._masker.masked_text(script), self._masker.masked_text(calls)

    def check_alive(self, timeout: float = 60) -> bool:
        """Find out whether the browser answers, also while a step is running.

        Args:
            timeout: Seconds to wait for the answer.

        Returns:
            Whether it does; False if it was not started.
        """
        return self._supervisor.check_alive(timeout)

    def interrupt(self, token: object = None) -> None:
        """Give up a step that another thread waits for; the browser lives on.

        Args:
            token: The step's, should it be another one's turn; None for the one that runs.
        """
        self._cancelled_token = token
        if token is None or token is self._current_token:
            self._supervisor.interrupt()

    def close(self) -> None:
        """End the browser and its process. More than once does no harm."""
        self._idle.close()
        # Not under the lock: closing ends a step that another thread waits for.
        self._supervisor.close()

    def _suspend(self) -> None:
        if self._evaluation is not None:
            return  # its page is the task's, which would begin anew
        if self._step_lock.acquire(blocking=False):  # else a step runs, which counts anew
            try:
                self._supervisor.suspend()
            finally:
                self._step_lock.release()

    def mask(self, secrets: Iterable[str]) -> None:
        """Hide texts in all observations and errors from now on; pictures show them.

        Args:
            secrets: The texts.
        """
        self._masker.add(secrets)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript in the active page.

        Args:
            expression: An expression or a function.
            argument: What the function is called with, as JSON can say it.

        Returns:
            The value.

        Raises:
            BrowserError: It threw, or there is no browser.
        """
        return self._request("evaluate", expression=expression, argument=argument)

    def storage_state(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Read cookies and local storage, to log in once and begin with that later.

        Args:
            path: A file to save them to as well; only its owner can read it.

        Returns:
            Them, as ``BrowserEnv(storage_state=…)`` takes them.

        Raises:
            BrowserError: There is no browser.
        """
        state: dict[str, Any] = self._request("storage_state")
        if path is not None:
            write_state(state, path)
        return state

    @contextmanager
    def trace(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Record all within a ``with`` block, secrets too, for ``playwright show-trace``.

        Args:
            path: The archive to write at the end, ``….zip``.

        Yields:
            Nothing.

        Raises:
            BrowserError: There is no browser, or it records already.
        """
        self._request("start_trace")
        try:
            yield
        finally:
            self._request("stop_trace", path=os.path.abspath(path))

    def renew(self) -> None:
        """Go back to one blank tab without cookies, as if the browser had just started."""
        self._request("renew")

    def begin_task(self, task: str | Task, seed: int) -> None:
        """Begin an episode of another task, of the same kind as the one before.

        Args:
            task: The name of one of BrowserGym's, or a task object.
            seed: What its random choices begin with.

        Raises:
            BrowserError: The task cannot be set up, or this environment evaluates nothing.
        """
        if isinstance(task, str):
            self._supervisor.begin_task(task, seed)
            return
        if self._evaluation is None:
            raise BrowserError("This browser was made without a task; make one with a task.")
        self.renew()
        self._evaluation.restart(task, seed)

    def _request(self, operation: str, **details: Any) -> Any:
        if self._is_gym:
            raise BrowserError(f"{operation} is not available with a task of BrowserGym.")
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
        """Take secrets out of an error's message."""
        message = self._masker.masked_text(str(error))
        return error if message == str(error) else type(error)(message)


def observation_seconds(timeout: float) -> float:
    """Return the seconds that an observation may take after calls with that time limit."""
    return max(1.0, min(timeout, 30.0))


_living: weakref.WeakSet[BrowserEnv] = weakref.WeakSet()


def _close_all() -> None:
    for env in list(_living):
        env.close()


atexit.register(_close_all)
