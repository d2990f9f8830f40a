"""A pytest plugin: what BrowserGym's tests know as its environment and action set is ours.

Actions in BrowserGym's language and all observations are ours. Its tasks, its Python actions
and what its tests do to the page by themselves get a page of Playwright's that is connected to
the browser that ours has started.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import io
import re
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import browsergym.core.action.highlevel as highlevel
import browsergym.core.env as environment
import browsergym.core.registration as registration
import numpy as np
from browsergym.core import _get_global_playwright
from browsergym.core.action.base import execute_python_code
from PIL import Image

from oh_jupyter.browser import BrowserEnv
from oh_jupyter.browser.channel.language import parse_actions
from oh_jupyter.browser.evaluation import Verdict
from oh_jupyter.browser.executable import find_executable
from oh_jupyter.errors import BrowserActionError
from oh_jupyter.testing import wait_until

MARKING = files("browsergym.core").joinpath("javascript/frame_mark_elements.js").read_text("utf-8")
STANDARD_TAGS = frozenset(
    re.findall(r'"(\w+)"', re.findall(r"html_tags = new Set(.*?);", MARKING, re.S)[0])
)


def without_bids_of_other_tags(observation: dict[str, Any]) -> None:
    """Take the bids of tags that are not HTML's away; ours marks all."""
    strings, taken = observation["dom_object"]["strings"], set()
    for document in observation["dom_object"]["documents"]:
        nodes = document["nodes"]
        for name, row in zip(nodes["nodeName"], nodes["attributes"], strict=True):
            named = {strings[row[at]]: at for at in range(0, len(row), 2)}
            if "bid" in named and strings[name].lower() not in STANDARD_TAGS:
                taken.add(strings[row[named["bid"] + 1]])
                del row[named["bid"] : named["bid"] + 2]
    for node in observation["axtree_object"]["nodes"]:
        if node.get("browsergym_id") in taken:
            del node["browsergym_id"]


def in_their_words(error: str) -> str:
    """Cut off what ours says after BrowserGym's sentence: its tests compare the whole."""
    return error.partition(". ")[0]


class ActionSet(highlevel.HighLevelActionSet):
    """BrowserGym's choice of actions, parsed by ours."""

    def to_python_code(self, action: str) -> str:
        try:
            calls = parse_actions(action)
        except BrowserActionError as error:
            kind, _, message = in_their_words(str(error)).partition(": ")
            raise getattr(builtins, kind)(message) from None
        for call in calls:
            if call.name not in self.action_set:
                raise NameError(f"Invalid action type '{call.name}'.")
        return "".join(f"\n{call.source}" for call in calls)


class AdaptedTask:
    """A task of BrowserGym as one of ours."""

    name = "adapted"

    def __init__(self, outer: AdaptedEnv) -> None:
        self.outer = outer

    def setup(self, page: object, seed: int) -> Any:
        goal, _ = self.outer.task.setup(page=self.outer.page)
        return goal or []

    def validate(self, page: object, messages: list[dict[str, Any]]) -> Verdict:
        chat = [*messages, *self.outer.chat.messages]
        reward, done, message, _ = self.outer.task.validate(self.outer.page, chat)
        return Verdict(reward, done, message)


class AdaptedEnv(environment.BrowserEnv):
    """BrowserGym's environment class with our browser inside."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        options.setdefault("action_mapping", ActionSet().to_python_code)
        self.active_page_index, self._resources = 0, contextlib.ExitStack()
        super().__init__(*arguments, **options)

    @property
    def page(self) -> Any:
        if self.context is None:
            self._connect()
        self.context.cookies()  # lets Playwright hear of tabs that were opened or closed
        return self.context.pages[self.active_page_index]

    @page.setter
    def page(self, page: None) -> None:
        """BrowserGym's class begins without one."""

    def reset(
        self, seed: int | None = None, options: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        self.close()
        self.task = self.task_entrypoint(seed=seed, **self.task_kwargs)
        messages: list[dict[str, Any]] = []
        self.chat = SimpleNamespace(
            messages=messages,
            add_message=lambda role, msg: messages.append({"role": role, "message": msg}),
        )
        self._folder = Path(self._resources.enter_context(tempfile.TemporaryDirectory()))
        wrapper = self._folder / "chromium"
        wrapper.write_text(f'#!/bin/sh\nexec "{find_executable()}" --remote-debugging-port=0 "$@"')
        wrapper.chmod(0o700)
        viewport = self.viewport or self.task.viewport
        self._ours = BrowserEnv(
            AdaptedTask(self),
            executable_path=wrapper,
            user_data_dir=self._folder / "profile",
            viewport=(viewport["width"], viewport["height"]),
            seed=seed,
        )
        self._resources.callback(self._ours.close)
        self._ours.start()
        return self._observed(self._ours.step("noop(0)"), ""), {"task_info": {}}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        error = ""
        is_ours = isinstance(getattr(self.action_mapping, "__self__", None), ActionSet)
        if not is_ours:
            try:
                code = self.action_mapping(action) if self.action_mapping else action
                execute_python_code(code, self.page, print, print)
            except Exception as raised:  # whatever the code does
                error = f"{type(raised).__name__}: {raised}"
        seen = self._ours.step(action if is_ours else "noop(0)")
        evaluation = self._ours.evaluation
        assert evaluation is not None
        observation = self._observed(seen, error or in_their_words(seen["last_action_error"]))
        return observation, evaluation.rewards[-1], evaluation.done, False, {}

    def close(self) -> None:
        self._resources.close()
        self.context, self.active_page_index = None, 0

    def _connect(self) -> None:
        """Connect Playwright to the browser that ours has started."""
        port_file = self._folder / "profile" / "DevToolsActivePort"
        wait_until(lambda: port_file.is_file() and "\n" in port_file.read_text())
        playwright = _get_global_playwright()
        playwright.selectors.set_test_id_attribute("bid")
        port = port_file.read_text().split()[0]
        browser = playwright.chromium.connect_over_cdp(f"http://127.0.0.1:{port}")
        self._resources.callback(browser.close)
        self.context = browser.contexts[0]
        self.context.set_default_timeout(self.timeout or self.task.timeout)
        # The only site of the internet that a test goes to, and it does not look at it.
        self.context.route("https://www.google.com/", lambda route: route.fulfill(body="found"))

    def _observed(self, seen: dict[str, Any], error: str) -> dict[str, Any]:
        """Give an observation of ours BrowserGym's types."""
        self.active_page_index = seen["active_page_index"]
        if self.tags_to_mark == "standard_html":
            without_bids_of_other_tags(seen)
        picture = io.BytesIO(base64.b64decode(seen["screenshot"].partition(",")[2]))
        changed = {
            **seen,
            "screenshot": np.array(Image.open(picture).convert("RGB")),
            "active_page_index": np.asarray([seen["active_page_index"]]),
            "elapsed_time": np.asarray([seen["elapsed_time"]]),
            "last_action_error": error,
        }
        for name in ("chat_messages", "goal_object", "open_pages_urls", "open_pages_titles"):
            changed[name] = tuple(seen[name])
        return {name: changed[name] for name in self.observation_space}


sys.modules.setdefault("regex", re)  # which a test imports and does not use
highlevel.HighLevelActionSet = ActionSet
environment.BrowserEnv = registration.BrowserEnv = AdaptedEnv
