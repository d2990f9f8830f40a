"""Worker for BrowserGym tasks, with BrowserGym's engine behind the same pipe.

BrowserGym's tasks use Playwright's blocking interface, and their published results were measured
on BrowserGym's engine. That is why this worker, and no other, uses it. Needs the extra ``eval``.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import queue
from typing import Any

from oh_jupyter.browser.channel.pipe import (
    GET_GOAL,
    GET_REWARDS,
    RECORDS,
    LaunchSettings,
    WorkerEnd,
    first_line,
    run_worker,
)
from oh_jupyter.browser.evaluation.gym_tasks import import_tasks
from oh_jupyter.browser.evaluation.tasks import text_observation
from oh_jupyter.browser.worker.marks import draw_marks
from oh_jupyter.browser.worker.page_text import to_text
from oh_jupyter.browser.worker.snapshot import documents_of
from oh_jupyter.errors import BrowserError

PLAYWRIGHT_TIMEOUT_MS = 100_000
"""Milliseconds that OpenHands gives Playwright's calls in evaluations."""


class BrowserStartError(Exception):
    """Failure to start the browser, which another attempt may not repeat."""


def force_executable(executable: str, sandbox: bool) -> None:
    """Use this executable for every browser; BrowserGym sets it for only one of its two."""
    from playwright.sync_api import BrowserType

    launch: Any = BrowserType.launch
    forced = {"executable_path": executable, "chromium_sandbox": sandbox, "handle_sigint": False}

    def launch_forced(self: BrowserType, **options: Any) -> Any:
        try:
            return launch(self, **{**options, **forced})
        except Exception as error:
            raise BrowserStartError(str(error)) from error

    BrowserType.launch = launch_forced  # type: ignore[method-assign]


class GymEpisode:
    """Episode of a BrowserGym task; another one can follow."""

    def __init__(self, settings: LaunchSettings) -> None:
        """Create the environment and set up the task."""
        self.rewards: list[float] = []
        self._task = ""
        self._env: Any = None
        self._is_headless = settings.headless
        import_tasks(settings.task)
        force_executable(settings.executable, settings.sandbox)
        self.begin(settings.task, settings.seed)

    def begin(self, task: str, seed: int | None) -> None:
        """Start an episode of the same task or of another one."""
        if task != self._task:
            import_tasks(task)
            self.close()
            gymnasium: Any = importlib.import_module("gymnasium")
            is_open = task == "browsergym/openended"
            self._env = gymnasium.make(
                task,
                headless=self._is_headless,
                disable_env_checker=True,
                tags_to_mark="all",
                timeout=PLAYWRIGHT_TIMEOUT_MS,
                **({"task_kwargs": {"start_url": "about:blank"}} if is_open else {}),
            )
            self._task = task
        try:
            observation, _ = self._env.reset(seed=seed)
        except BrowserStartError:
            raise
        except Exception as error:  # tasks can raise anything
            raise BrowserError(
                f"The task {task} could not be set up: {first_line(error)}"
            ) from error
        self.rewards = []
        parts = list(observation.get("goal_object", ()))
        texts = [part["text"] for part in parts if part["type"] == "text"]
        urls = [part["image_url"] for part in parts if part["type"] == "image_url"]
        self._goal = "\n".join(texts) or str(observation.get("goal", ""))
        self._images = [url["url"] if isinstance(url, dict) else url for url in urls]

    def is_alive(self) -> bool:
        """Return whether the browser is running."""
        browser = self._env.unwrapped.browser
        return browser is not None and bool(browser.is_connected())

    def step(self, action: str, include: list[str]) -> dict[str, Any]:
        """Run an action."""
        for part in set(include) & set(RECORDS):
            raise BrowserError(f"{part} is not available with a BrowserGym task.")
        if action.strip() == GET_GOAL:
            return text_observation(action, self._goal, self._images)
        if action.strip() == GET_REWARDS:
            return text_observation(action, json.dumps(self.rewards))
        observation, reward, terminated, _, _ = self._env.step(action)
        self.rewards.append(float(reward))
        return {
            **_to_observation(observation),
            "image_content": self._images,
            "done": bool(terminated),
        }

    def close(self) -> None:
        """Close the task and its browser."""
        if self._env is not None:
            self._env.close()


def _to_observation(observation: dict[str, Any]) -> dict[str, Any]:
    """Convert an observation of BrowserGym's engine to the one of a step."""
    from PIL import Image

    picture = io.BytesIO()
    Image.fromarray(observation["screenshot"]).save(picture, "PNG", compress_level=1)
    screenshot = f"data:image/png;base64,{base64.b64encode(picture.getvalue()).decode('ascii')}"
    documents = documents_of(observation["dom_object"])
    inner = {
        (id(document), index): documents[number]
        for document in documents
        for index, number in document.content_documents.items()
        if 0 <= number < len(documents)
    }
    properties = {
        bid: {**item, "bbox": None if item["bbox"] is None else list(item["bbox"])}
        for bid, item in observation["extra_element_properties"].items()
    }
    plain: dict[str, Any] = {
        **observation,
        "screenshot": screenshot,
        "set_of_marks": draw_marks(screenshot, properties),
        "extra_element_properties": properties,
        "text_content": to_text(documents[0], inner),
        "active_page_index": int(observation["active_page_index"].item()),
        "elapsed_time": float(observation["elapsed_time"].item()),
        "notices": [],
        "downloads": [],
    }
    return json.loads(json.dumps(plain, default=_as_json))  # type: ignore[no-any-return]


def _as_json(value: Any) -> Any:
    """Convert a NumPy value or another iterable for JSON."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _serve(parent: WorkerEnd) -> int:
    settings = parent.read_settings()
    if settings is None:
        return 0
    try:
        episode = GymEpisode(settings)
    except Exception as error:
        # Another attempt helps only if the browser did not start.
        parent.refused(first_line(error), is_final=not isinstance(error, BrowserStartError))
        return 1
    parent.started()
    # Playwright's blocking interface works only in the thread that started it.
    requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
    parent.listen(requests.put)
    while (request := requests.get()) is not None:
        if request["op"] == "cancel":
            continue
        try:
            result: Any = True
            if request["op"] == "step":
                result = episode.step(request["action"], request["include"])
            elif request["op"] == "begin_task":
                episode.begin(request["task"], request["seed"])
        except Exception as error:
            parent.fail(request["id"], error)
        else:
            parent.answer(request["id"], result)
        if not episode.is_alive():
            return 1
    with contextlib.suppress(Exception):
        episode.close()
    return 0


def main() -> None:
    """Run the worker until its input ends or its browser does."""
    run_worker(_serve)


if __name__ == "__main__":
    main()
