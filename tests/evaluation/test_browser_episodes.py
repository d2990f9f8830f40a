"""Episodes in a browser, each in a process of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.browser import flatten_axtree
from oh_jupyter.evaluation import AgentLabAgent, Results, run_trials

pytestmark = pytest.mark.browser


@pytest.mark.thorough
def test_pictures_events_and_a_trace_are_kept(tmp_path: Path) -> None:
    # Within the test, so that it is sent along.
    def press(seen: dict[str, Any]) -> str:
        wanted = re.search('"(.*)"', seen["goal"])[1]
        tree = flatten_axtree(seen["axtree_object"])
        bid = re.search(rf"\[(\w+)\] button '{wanted}'", tree)[1]
        return f'click("{bid}")'

    out = tmp_path / "run.jsonl"
    (trial,) = run_trials(["click-button"], press, workers=1, out=out, trace=True)
    assert (trial.reward, trial.steps, trial.ended, trial.error) == (1.0, 1, "finished", "")
    results = Results(out)
    names = [path.rpartition("/")[2] for path in results.files(trial)]
    assert names == ["000.png", "001.png", "events.jsonl", "output.txt", "trace.zip"]
    assert results.store.read_bytes(results.files(trial)[1]).startswith(b"\x89PNG")
    events = list(results.events(trial))
    assert [event.get("observation", "action") for event in events] == [
        "browse", "action", "browse",
    ]  # fmt: skip
    assert events[-1]["extras"]["screenshot_path"] == "001.png"


class ArgsOfAgentLab:
    """AgentLab's ``AgentArgs`` and the agent that they make."""

    def prepare(self) -> None:
        self.is_prepared = True

    def make_agent(self) -> ArgsOfAgentLab:
        assert self.is_prepared
        return self

    def obs_preprocessor(self, seen: dict[str, Any]) -> dict[str, Any]:
        return {"shape": seen["screenshot"].shape, "goal": seen["goal_object"][0]["text"]}

    def get_action(self, seen: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
        assert seen["shape"] == (720, 1280, 3)
        assert seen["goal"].startswith("Click the button")
        return None, {}


@pytest.mark.thorough
def test_agents_of_agentlab() -> None:
    (trial,) = run_trials(["click-button"], AgentLabAgent(ArgsOfAgentLab()))
    assert (trial.steps, trial.error) == (0, "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what AgentLab needs is full of them
def test_the_generic_agent_of_agentlab() -> None:
    """AgentLab's own, on MiniWoB, with a model that reads its prompt and answers by a script."""
    pytest.importorskip("agentlab", reason="AgentLab is not installed")
    from agentlab.agents.generic_agent.agent_configs import FLAGS_CUSTOM
    from agentlab.agents.generic_agent.generic_agent import GenericAgentArgs
    from agentlab.llm.base_api import AbstractChatModel, BaseModelArgs

    # Within the test, so that they are sent along.
    class Script(AbstractChatModel):
        def __call__(self, messages: Any) -> dict[str, str]:
            (bid,) = re.findall(r"\[(\w+)\] button 'Click Me!'", str(messages))
            answer = f"<think>It is there.</think><action>click('{bid}')</action>"
            return {"role": "assistant", "content": answer}

    class ScriptArgs(BaseModelArgs):
        def make_model(self) -> Script:
            return Script()

    made = GenericAgentArgs(chat_model_args=ScriptArgs("script"), flags=FLAGS_CUSTOM)
    tasks = ["browsergym/miniwob.click-test"]
    (trial,) = run_trials(tasks, AgentLabAgent(made), workers=1)
    assert (trial.reward, trial.steps, trial.ended, trial.error) == (1.0, 1, "finished", "")
