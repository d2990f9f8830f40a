"""Evaluation mode: goals, rewards, tasks of our own, of the user, and of BrowserGym."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.browser import BrowserEnv, flatten_axtree
from oh_jupyter.browser.evaluation.tasks import TASKS, Task, Verdict, find_task, match_tasks
from oh_jupyter.browser.wire import browse
from oh_jupyter.errors import BrowserError
from oh_jupyter.evaluation import run_trials
from oh_jupyter.events import BrowseInteractiveAction, BrowserOutputObservation

pytestmark = pytest.mark.browser


class Solver:
    """Solves the tasks that come along, by what an agent can see."""

    def __call__(self, seen: dict[str, Any]) -> str:
        self.tree = flatten_axtree(seen["axtree_object"], seen["extra_element_properties"])
        quoted = re.findall(r'"([^"]*)"', seen["goal"])
        goal = seen["goal"]
        if goal.startswith("Click"):
            return self.click("button", quoted[0])
        if goal.startswith("Enter"):
            return self.enter(goal, quoted)
        if goal.startswith("Choose"):
            call = f'select_option("{self.bid("combobox", "Choice")}", "{quoted[0]}")'
            return f"{call}\n{self.submit()}"
        if goal.startswith("Tick"):
            return "\n".join([*(self.click("checkbox", name) for name in quoted), self.submit()])
        if goal.startswith("Log in"):
            name, password = self.bid("textbox", "User name"), self.bid("textbox", "Password")
            return f'fill("{name}", "{quoted[0]}") fill("{password}", "{quoted[1]}")' + self.click(
                "button", "Log in"
            )
        if goal.startswith("Open"):
            if f"link '{quoted[0]}'" in self.tree:
                return self.click("link", quoted[0])
            return self.click("DisclosureTriangle", r"Section \d', expanded=False").replace(
                "\\", ""
            )
        if goal.startswith("Drag"):
            return f'drag_and_drop("{self.bid(".*", quoted[0])}", "{self.bid("region", "box")}")'
        if goal.startswith("Press"):
            return self.click("button", "Confirm" if "'Confirm'" in self.tree else "Start")
        count = self.tree.count(f"StaticText '{quoted[0]}'")
        return f'send_msg_to_user("{count}")'

    def enter(self, goal: str, quoted: list[str]) -> str:
        if "price" in goal:
            text = re.search(rf"cell '{quoted[0]}'\n.*cell '(\d+)'", self.tree)[1]
        elif "sum" in goal:
            text = str(sum(map(int, re.search(r"'(\d+) \+ (\d+)", self.tree).groups())))
        else:
            text = quoted[0]
        return f'fill("{self.bid("textbox", ".*")}", "{text}")\n{self.submit()}'

    def submit(self) -> str:
        return self.click("button", "Submit")

    def click(self, role: str, name: str) -> str:
        return f'click("{self.bid(role, name)}")'

    def bid(self, role: str, name: str) -> str:
        end = "" if name.endswith("False") else "'"
        return re.search(rf"\[(\w+)\] {role} '{name}{end}", self.tree)[1]


@pytest.mark.parametrize(
    "seeds", [pytest.param(1, marks=pytest.mark.thorough), pytest.param(3, marks=pytest.mark.slow)]
)
def test_every_task_can_be_solved(seeds: int):
    trials = list(run_trials(list(TASKS), Solver(), seeds=seeds))
    assert [(t.task, t.error) for t in trials if t.reward != 1] == []
    assert len(trials) == seeds * len(TASKS)
    assert max(trial.steps for trial in trials) <= 4


@pytest.mark.thorough
def test_a_task_can_be_failed():
    wrong = list(run_trials(["click-button"], lambda _: 'click("99")', steps=2))
    assert (wrong[0].reward, wrong[0].steps) == (0, 2)
    assert "Could not find" in wrong[0].error
    idle = list(run_trials(["click-button"], lambda _: ""))
    assert (idle[0].reward, idle[0].steps) == (0, 0)
    broken = list(run_trials(["click-button"], lambda seen: seen["nothing"]))
    assert broken[0].error == "KeyError: 'nothing'"


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_makes_the_same_task(name: str):
    make = TASKS[name].make
    made = [make(random.Random(seed)) for seed in (1, 1, 2)]
    assert made[0] == made[1] or name.endswith("wait-for-it")
    assert made[0][1] != made[2][1]


@pytest.mark.thorough
def test_the_special_actions(tmp_path: Path):
    def ask(calls: str) -> BrowserOutputObservation:
        seen = browse(BrowseInteractiveAction(calls), env, str(tmp_path))
        assert isinstance(seen, BrowserOutputObservation)
        return seen

    with BrowserEnv("oh_jupyter/click-button", seed=4) as env:
        goal = ask("GET_EVAL_GOAL")
        assert re.fullmatch(r'Click the button "\w+"\.', goal.content)
        assert goal.goal_image_urls == []
        assert not goal.error
        assert json.loads(ask("GET_EVAL_REWARDS").content) == []
        seen = env.step("noop(0)")
        assert seen["goal"] == goal.content
        assert seen["goal_object"] == [{"type": "text", "text": goal.content}]
        ask(Solver()(seen))
        assert json.loads(ask("GET_EVAL_REWARDS").content) == [0.0, 1.0]
        assert env.evaluation is not None
        assert env.evaluation.done
    with BrowserEnv() as env:
        assert "GET_EVAL_GOAL" in env.step("GET_EVAL_GOAL", include=[])["last_action_error"]


class Portrait:
    """A task of a user's own: with a picture, a page of a server, and words afterwards."""

    name = "portrait"

    def __init__(self, url: str) -> None:
        self.url = url

    def setup(self, page, seed):
        page.goto(self.url)
        return [
            {"type": "text", "text": "Name this person."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        ]

    def validate(self, page, messages):
        assert page.url == self.url
        assert "Who" in page.text
        texts = [item["message"] for item in messages]
        return Verdict(0.5, True, "Thank you.") if "Ada" in texts else (0, False)


@pytest.mark.thorough
def test_a_task_of_ones_own(site):
    task = Portrait(site.put("/who", "<h1>Who is it?"))
    assert isinstance(task, Task)
    with BrowserEnv(task) as env:
        goal = env.step("GET_EVAL_GOAL")
        assert goal["text_content"] == "Name this person."
        assert goal["image_content"] == ["data:image/png;base64,AA"]
        assert env.step("noop(0)")["chat_messages"] == []
        seen = env.step('send_msg_to_user("Ada")')
        assert [item["message"] for item in seen["chat_messages"]] == ["Ada", "Thank you."]
        assert env.step("GET_EVAL_REWARDS")["text_content"] == "[0.0, 0.5]"


@pytest.mark.thorough
def test_report_infeasible_ends_an_episode():
    with BrowserEnv("click-button") as env:
        env.step('report_infeasible("no")', include=[])
        assert env.evaluation is not None
        assert env.evaluation.done


def test_names():
    assert match_tasks(["oh_jupyter/click-*", "log-in", "browsergym/miniwob.x", "log-in"]) == [
        "oh_jupyter/click-button", "oh_jupyter/log-in", "browsergym/miniwob.x",
    ]  # fmt: skip
    assert find_task("log-in") is TASKS["oh_jupyter/log-in"]
    with pytest.raises(BrowserError, match="Similar names: oh_jupyter/click-button"):
        BrowserEnv("oh_jupyter/click-buton")
    with pytest.raises(BrowserError, match="No task matches"):
        match_tasks(["fly-*"])


def test_a_task_of_browsergym_needs_its_package():
    try:
        import browsergym.webarena  # noqa: F401
    except ImportError:
        with (
            BrowserEnv("browsergym/webarena.310") as env,
            pytest.raises(BrowserError, match=r"oh_jupyter\[eval\]"),
        ):
            env.step("noop(0)")


FAMILY = """
from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask


class Press(AbstractBrowserTask):
    @classmethod
    def get_task_id(cls):
        return "ours.press"

    def setup(self, page):
        page.set_content("<title>Press</title><button onclick='pressed = 1'>Press me</button>")
        image = {"type": "image_url", "image_url": "data:image/png;base64,AA"}
        return [{"type": "text", "text": "Press the button."}, image], {}

    def validate(self, page, chat_messages):
        pressed = page.evaluate("window.pressed") == 1
        return float(pressed), pressed, "", {}


register_task(Press.get_task_id(), Press)
"""


@pytest.fixture
def gym_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A task for BrowserGym's own engine, in a family of its own."""
    pytest.importorskip("browsergym.core")
    package = tmp_path / "browsergym" / "ours"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(FAMILY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "browsergym/ours.press"


@pytest.mark.thorough
def test_a_task_of_browsergym(gym_task: str, tree: Callable[..., str]):
    with BrowserEnv(gym_task, seed=1) as env:
        goal = env.step("GET_EVAL_GOAL")
        assert goal["text_content"] == "Press the button."
        assert goal["image_content"] == ["data:image/png;base64,AA"]
        seen = env.step("noop(0)")
        assert seen["open_pages_titles"] == ["Press"]
        assert "Press me" in seen["text_content"]
        assert seen["screenshot"].startswith("data:image/png;base64,")
        bid = re.search(r"\[(\w+)\] button", tree(seen))[1]
        assert env.check_alive()
        seen = env.step(f'click("{bid}")')
        assert seen["done"] is True
        assert env.step("GET_EVAL_REWARDS")["text_content"] == "[0.0, 1.0]"
        with pytest.raises(BrowserError, match="not available"):
            env.evaluate("1")
    assert "browsergym" not in sys.modules or "browsergym.ours" not in sys.modules


@pytest.mark.slow
def test_trials_of_a_task_of_browsergym(gym_task: str, tree: Callable[..., str]):
    def press(seen: dict[str, Any]) -> str:
        match = re.search(r"\[(\w+)\] button", tree(seen))
        assert match
        return f'click("{match[1]}")'

    trials = list(run_trials([gym_task], press, steps=3))
    assert [(trial.reward, trial.steps) for trial in trials] == [(1.0, 1)]
