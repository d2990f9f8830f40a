"""MiniWoB for real: BrowserGym's tasks and engine, on the pages of the package ``miniwob``."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.browser import BrowserEnv, flatten_axtree
from oh_jupyter.browser.evaluation.gym_tasks import list_tasks, miniwob_url
from oh_jupyter.browser.evaluation.tasks import match_tasks
from oh_jupyter.browser.wire import browse
from oh_jupyter.errors import BrowserError
from oh_jupyter.evaluation import run_trials
from oh_jupyter.events import BrowseInteractiveAction, BrowserOutputObservation

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("browsergym", "miniwob")),
        reason="needs the extra eval",
    ),
]
KEYS = {
    "url", "open_pages_urls", "open_pages_titles", "active_page_index", "screenshot",
    "set_of_marks", "dom_object", "axtree_object", "extra_element_properties", "text_content",
    "focused_element_bid", "last_action", "last_action_error", "elapsed_time", "goal",
    "goal_object", "chat_messages", "image_content", "notices", "downloads",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINIWOB_URL", raising=False)


class Solver:
    """Solves some tasks by what an agent can see: the goal and the tree."""

    def __call__(self, seen: dict[str, Any]) -> str:
        self.tree = flatten_axtree(seen["axtree_object"])
        goal: str = seen["goal"]
        quoted = re.findall(r'"([^"]*)"', goal)
        fields = re.findall(r"\[(\w+)\] textbox", self.tree)
        if goal.startswith("Click the button"):
            return self.click("button")
        if goal.startswith("Click on the"):
            return self.click("button", quoted[0])
        if goal.startswith("Click button ONE"):
            return f"{self.click('button', 'ONE')}\n{self.click('button', 'TWO')}"
        if goal.startswith("Focus"):
            which = re.search(r"(\d)\w\w input", goal)
            return f'focus("{fields[int(which[1]) - 1 if which else 0]}")'
        if goal.startswith("Close"):
            return self.click("button", "Close")
        if "password" in goal:
            values = quoted if "username" in goal else quoted * 2
            done = "Login" if "username" in goal else "Submit"
            return self.fill(fields, values) + self.click("button", done)
        if goal.startswith("Enter"):
            return self.fill(fields, quoted) + self.click("button", "Submit")
        wanted = re.match(r"Select (.*?)(?: from the list)? and click Submit", goal)[1]
        if "combobox" in self.tree:
            bid = re.search(r"\[(\w+)\] combobox", self.tree)[1]
            return f'select_option("{bid}", "{wanted}")\n{self.click("button", "Submit")}'
        names = [] if wanted == "nothing" else wanted.split(", ")
        calls = [self.click("(?:radio|checkbox)", name) for name in names]
        return "\n".join([*calls, self.click("button", "Submit")])

    def click(self, role: str, name: str = "") -> str:
        bid = re.search(rf"\[(\w+)\] {role} .{re.escape(name)}", self.tree)[1]
        return f'click("{bid}")'

    def fill(self, fields: list[str], values: list[str]) -> str:
        pairs = zip(fields, values, strict=True)
        return "".join(f'fill("{field}", "{value}")\n' for field, value in pairs)


@pytest.mark.slow
def test_tasks_are_solved_and_seeds_make_them():
    shown: list[tuple[str, str]] = []
    solver = Solver()

    def agent(seen: dict[str, Any]) -> str:
        shown.append((seen["goal"], seen["text_content"]))
        return solver(seen)

    name = "browsergym/miniwob.click-checkboxes"
    trials = list(run_trials([*match_tasks([name]), name], agent, seeds=2, steps=1))
    assert [(each.task, each.seed, each.reward, each.error) for each in trials] == [
        (name, seed, 1.0, "") for seed in (0, 1, 0, 1)
    ]
    assert shown[:2] == shown[2:]
    assert shown[0] != shown[1]


@pytest.mark.thorough
def test_the_special_actions_and_the_observation(tmp_path: Path):
    def ask(calls: str) -> BrowserOutputObservation:
        seen = browse(BrowseInteractiveAction(calls), env, str(tmp_path))
        assert isinstance(seen, BrowserOutputObservation)
        return seen

    with BrowserEnv("browsergym/miniwob.click-test-2", seed=3) as env:
        assert ask("GET_EVAL_GOAL").content == "Click button ONE."
        assert json.loads(ask("GET_EVAL_REWARDS").content) == []
        seen = env.step("noop(0)")
        assert set(seen) >= KEYS
        assert json.loads(json.dumps(seen)) == seen
        assert seen["goal"] == "Click button ONE."
        assert seen["open_pages_titles"] == ["Click Test Task"]
        tree = flatten_axtree(seen["axtree_object"])
        assert "TWO" in tree
        bid = re.search(r"\[(\w+)\] button 'TWO'", tree)[1]
        assert seen["extra_element_properties"][bid]["clickable"] is True
        shown = ask(f'click("{bid}")')
        assert not shown.error
        assert "BEGIN accessibility tree" in shown.content
        assert shown.screenshot.startswith("data:image/png;base64,")
        # The wrong button ends the episode, and is worth nothing.
        assert json.loads(ask("GET_EVAL_REWARDS").content) == [0.0, 0.0]
        with pytest.raises(BrowserError, match="console_messages is not available"):
            env.step("noop(0)", include=["console_messages"])


def test_names_are_listed_and_near_ones_named():
    names = list_tasks("browsergym/miniwob.click-tab*")
    assert names[:2] == ["browsergym/miniwob.click-tab", "browsergym/miniwob.click-tab-2"]
    with (
        BrowserEnv("browsergym/miniwob.click-tst") as env,
        pytest.raises(BrowserError, match=r"Similar names: browsergym/miniwob\.click-test"),
    ):
        env.start()


@pytest.mark.thorough
def test_the_pages_are_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    url = miniwob_url()
    assert url is not None
    assert Path(url.removeprefix("file://"), "click-test.html").is_file()
    monkeypatch.setenv("MINIWOB_URL", f"{tmp_path.as_uri()}/none")
    assert miniwob_url() == f"{tmp_path.as_uri()}/none/"
    with (
        BrowserEnv("browsergym/miniwob.click-test") as env,
        pytest.raises(BrowserError, match=r"could not be set up: .*ERR_FILE_NOT_FOUND at file:"),
    ):
        env.start()
    monkeypatch.delenv("MINIWOB_URL")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert miniwob_url() is None
