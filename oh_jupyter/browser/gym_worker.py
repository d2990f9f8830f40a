"""The worker for tasks of BrowserGym: its own engine, behind the same pipe.

Its tasks bring pages up and judge them with Playwright's blocking interface, on the engine
that their published results were measured with; so it is that one which runs here, and only
here. Needs the extra ``eval``.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import os
import queue
import sys
import threading
from typing import Any

from oh_jupyter.browser.evaluation import GOAL, REWARDS, answer_as_observation
from oh_jupyter.browser.marks import draw_marks
from oh_jupyter.browser.pipe import read_frame, write_frame
from oh_jupyter.browser.snapshot import documents_of, to_text

__all__ = ["main"]

PATIENCE = 100_000
"""Milliseconds that OpenHands gives Playwright's calls in evaluations."""


def import_tasks(name: str) -> None:
    """Import the package that registers a task.

    Args:
        name: The task's name, such as ``browsergym/miniwob.click-test``.

    Raises:
        RuntimeError: It is not installed.
    """
    family = name.removeprefix("browsergym/").partition(".")[0]
    package = "browsergym.core" if family == "openended" else f"browsergym.{family}"
    try:
        importlib.import_module("browsergym.core")
        importlib.import_module(package)
    except ImportError as error:
        distribution = package.replace(".", "-")
        raise RuntimeError(
            f"The task {name} needs the package {distribution}: pip install 'oh_jupyter[eval]' "
            f"{distribution}. ({error})"
        ) from error


def use_browser(executable: str, sandbox: bool) -> None:
    """Let every browser that this process starts be that one.

    BrowserGym starts two, and only one of them can be named in its arguments.

    Args:
        executable: Path of the browser.
        sandbox: Whether Chromium's own sandbox is on.
    """
    from playwright.sync_api import BrowserType

    launch: Any = BrowserType.launch
    how = {"executable_path": executable, "chromium_sandbox": sandbox, "handle_sigint": False}

    def launch_that(self: BrowserType, **options: Any) -> Any:
        return launch(self, **{**options, **how})

    BrowserType.launch = launch_that  # type: ignore[method-assign]


class Episode:
    """A task that is being carried out.

    Attributes:
        rewards: The reward of each step so far.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        """Make the environment and set the task up.

        Args:
            settings: ``task``, ``seed``, and how to start the browser.
        """
        import_tasks(settings["task"])
        use_browser(settings["executable"], settings["sandbox"])
        gymnasium: Any = importlib.import_module("gymnasium")
        is_open = settings["task"] == "browsergym/openended"
        self._env: Any = gymnasium.make(
            settings["task"],
            headless=settings["headless"],
            disable_env_checker=True,
            tags_to_mark="all",
            timeout=PATIENCE,
            **({"task_kwargs": {"start_url": "about:blank"}} if is_open else {}),
        )
        observation, _ = self._env.reset(seed=settings["seed"])
        self.rewards: list[float] = []
        parts = list(observation.get("goal_object", ()))
        texts = [part["text"] for part in parts if part["type"] == "text"]
        urls = [part["image_url"] for part in parts if part["type"] == "image_url"]
        self._goal = "\n".join(texts) or str(observation.get("goal", ""))
        self._images = [url["url"] if isinstance(url, dict) else url for url in urls]

    def is_alive(self) -> bool:
        """Tell whether the browser is still there."""
        browser = self._env.unwrapped.browser
        return browser is not None and bool(browser.is_connected())

    def step(self, action: str) -> dict[str, Any]:
        """Carry out an action.

        Args:
            action: The action, or one of the two special ones.

        Returns:
            The observation.
        """
        if action.strip() == GOAL:
            return answer_as_observation(action, self._goal, self._images)
        if action.strip() == REWARDS:
            return answer_as_observation(action, json.dumps(self.rewards))
        observation, reward, terminated, _, _ = self._env.step(action)
        self.rewards.append(float(reward))
        return {**_plain(observation), "image_content": self._images, "done": bool(terminated)}

    def close(self) -> None:
        """End the task and its browser."""
        self._env.close()


def _plain(observation: dict[str, Any]) -> dict[str, Any]:
    """Turn an observation of BrowserGym into one of ours."""
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
    """Say a value of numpy in JSON."""
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _serve(input_: int, output: int) -> int:
    first = read_frame(input_)
    if first is None:
        return 0
    try:
        episode = Episode(first["settings"])
    except Exception as error:
        write_frame(output, {"id": first["id"], "error": str(error), "is_final": True})
        return 1
    write_frame(output, {"id": first["id"], "result": True})
    requests: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def listen() -> None:
        with contextlib.suppress(OSError):
            while (request := read_frame(input_)) is not None:
                requests.put(request)
        requests.put(None)

    # Playwright's blocking interface belongs to the thread that started it.
    threading.Thread(target=listen, daemon=True).start()
    while (request := requests.get()) is not None:
        if request["op"] == "cancel":
            continue
        answer: dict[str, Any]
        try:
            result: Any = True
            if request["op"] == "step":
                result = episode.step(request["action"])
            answer = {"result": result}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"}
        write_frame(output, {"id": request["id"], **answer})
        if not episode.is_alive():
            return 1
    with contextlib.suppress(Exception):
        episode.close()
    return 0


def main() -> None:
    """Run the worker until its input ends or its browser does."""
    # Whatever a library prints must not get between the frames.
    output = os.dup(1)
    os.dup2(2, 1)
    code = 1
    try:
        code = _serve(0, output)
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
