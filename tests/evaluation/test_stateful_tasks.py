"""Stateful tasks: their solution in every environment, and checkers that can fail."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation import EpisodeLog, Results, run_trials
from oh_jupyter.evaluation.stateful import ScriptedAgent, StatefulTask, Turn, match_stateful_tasks
from oh_jupyter.evaluation.stateful.environments import PLAIN_SERVER
from oh_jupyter.evaluation.stateful.task import is_right, wrong_files

pytest.importorskip("pandas")

PROGRAMS = Path(__file__).parents[2] / ".venv-jupyter-mcp" / "bin"


@pytest.fixture
def plain_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """jupyter-mcp-server on the PATH, or from where ``scripts/check`` installs it."""
    monkeypatch.setenv("PATH", str(PROGRAMS), prepend=":")
    if shutil.which(PLAIN_SERVER) is None:
        pytest.skip(f"{PLAIN_SERVER} is not installed")


def task(name: str) -> StatefulTask:
    (match,) = match_stateful_tasks(f"stateful/{name}")
    return match


class Wrong(ScriptedAgent):
    """Changes the answer of one turn, or forgets to go back."""

    def __init__(self, turn: int, reply: str) -> None:
        super().__init__()
        self._turn, self._text = turn, reply

    def __call__(self, seen: dict[str, Any]) -> Any:
        action = super().__call__(seen)
        is_reply = isinstance(action, str) and seen["turn"] == self._turn
        return self._text if is_reply else action


def test_there_are_twenty_tasks_of_three_to_eight_turns() -> None:
    tasks = list(match_stateful_tasks("stateful/bash/*"))
    assert len({each.title for each in tasks}) == len(tasks) == 20
    for each in tasks:
        assert 3 <= len(each.turns) <= 8
        assert any(turn.back_to or turn.suppose for turn in each.turns)
    with pytest.raises(EvaluationError, match=r"environments: bash, jupyter, oh_jupyter; titles:"):
        match_stateful_tasks("stateful/sh/*")


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("It is so.\nANSWER: 12", "12", True),
        ("**ANSWER: 12.0**", "12", True),
        ("ANSWER: 1,234.5", "1234.5", True),
        ("ANSWER: 246, 4", "246, 4", True),
        ("ANSWER: `North`", "north", True),
        ("ANSWER: -0.25", "-0.25", True),
        ("ANSWER: 1\nNo:\nANSWER: 2", "2", True),
        ("ANSWER: 12.01", "12", False),
        ("ANSWER: 0.25", "-0.25", False),
        ("ANSWER: 246, 5", "246, 4", False),
        ("ANSWER: south", "north", False),
        ("ANSWER: 2\nANSWER: 1", "2", False),
        ("12", "12", False),
        ("ANSWER:", "12", False),
        ("", "12", False),
    ],
)
def test_answers_are_compared(reply: str, answer: str, right: bool) -> None:
    assert is_right(reply, answer) == right


def test_files_are_compared(tmp_path: Path) -> None:
    for name, text in (("same", "a\n"), ("other", "b"), ("undone", "")):
        (tmp_path / name).write_text(text)
    expected = {"same": "a\n", "other": "a", "missing": "a", "undone": None, "gone": None}
    assert wrong_files(expected, tmp_path) == ["other", "missing", "undone"]


@pytest.mark.thorough
def test_going_back_and_supposing_leave_no_trace() -> None:
    outliers = task("bash/outliers")
    assert outliers.steps(4) == [*outliers.steps(1), outliers.turns[3].step.strip()]
    assert outliers.steps(7) == outliers.steps(4)
    answers = outliers.expected(0)["answers"]
    assert answers == outliers.expected(0)["answers"]
    assert answers != outliers.expected(1)["answers"]
    assert len(set(answers)) == len(answers), "a wrong state would go unnoticed"


@pytest.mark.thorough
def test_every_detour_can_be_noticed() -> None:
    """An agent that once does not go back, or keeps a supposition, has a wrong answer or file."""
    unnoticed = []
    for each in match_stateful_tasks("stateful/bash/*"):
        expected = each.expected(0)
        for number, turn in enumerate(each.turns):
            if turn.back_to or turn.suppose:
                step = f"{turn.step}\n{turn.suppose}"
                careless = replace(turn, back_to=0, step=step, suppose="")
                turns = (*each.turns[:number], careless, *each.turns[number + 1 :])
                if replace(each, turns=turns).expected(0) == expected:
                    unnoticed.append((each.title, number + 1))
    assert unnoticed == []


@pytest.mark.thorough
@pytest.mark.parametrize("environment", ["bash", "oh_jupyter"])
def test_a_wrong_answer_fails(environment: str, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    agent = Wrong(2, "ANSWER: 7")
    (trial,) = run_trials([f"stateful/{environment}/part-time"], agent, out=out)
    assert (trial.reward, trial.measures["right"], trial.measures["turns"]) == (0.0, 2, 3)
    assert trial.error.startswith("turn 2: '7', not ")
    results = Results(out)
    assert results.find(trial.task, 0) == trial
    events = list(results.events(trial))
    assert [event["action"] for event in events if event.get("action") == "message"] == (
        ["message"] * 6
    )
    assert events[0]["message"].startswith("The tool ")
    assert "ANSWER: 7" in [event["message"] for event in events]


@pytest.mark.thorough
def test_a_file_that_is_not_restored_fails() -> None:
    class Careless(ScriptedAgent):
        def __call__(self, seen: dict[str, Any]) -> Any:
            action = super().__call__(seen)
            if isinstance(action, dict):
                command = action["arguments"]["command"].replace("rm -f", "true")
                action = {"tool": "bash", "arguments": {"command": command}}
            return action

    (trial,) = run_trials(["stateful/bash/sites"], Careless())
    assert trial.reward == 0.0
    assert trial.error.startswith("turn 5: 'yes', not 'no'")


@pytest.mark.thorough
def test_an_agent_that_fails_has_a_result() -> None:
    def endless(seen: dict[str, Any]) -> Any:
        return {"tool": "bash", "arguments": {"command": "echo $$"}}

    (trial,) = run_trials(["stateful/bash/part-time"], endless, steps=3)
    assert "turn 1: EvaluationError: It made more than 3 calls" in trial.error
    assert trial.measures["calls"] == 4
    (trial,) = run_trials(["stateful/bash/part-time"], lambda seen: {"tool": 1})
    assert "neither a reply nor a call" in trial.error
    (trial,) = run_trials(["stateful/bash/part-time"], lambda seen: "")
    assert (trial.reward, trial.measures["right"]) == (0.0, 0)


@pytest.mark.thorough
def test_a_shell_forgets_and_a_kernel_remembers(tmp_path: Path) -> None:
    asked = Turn("?", "1"), Turn("?", "x + 1", step="x = 1")
    for environment, tool, key, expected in (
        ("bash", "bash", "command", "x:"),
        ("oh_jupyter", "run_ipython", "code", "x: 1"),
    ):
        seen_texts: list[str] = []

        def agent(
            seen: dict[str, Any], tool: str = tool, key: str = key, texts: list[str] = seen_texts
        ) -> Any:
            if seen["observation"] is not None:
                texts.append(seen["observation"].strip())
                return "ANSWER: 1"
            first, then = ("x=1", "echo x: $x") if tool == "bash" else ("x = 1", "print('x:', x)")
            return {"tool": tool, "arguments": {key: first if seen["turn"] == 1 else then}}

        small = StatefulTask("small", environment, asked, (), ())
        small.play(agent, seed=0, steps=2, log=EpisodeLog(tmp_path))
        assert seen_texts[1] == expected


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("environment", ["bash", "jupyter", "oh_jupyter"])
def test_the_scripts_solve_every_task(
    environment: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if environment == "jupyter":
        request.getfixturevalue("plain_server")
    trials = list(run_trials([f"stateful/{environment}/*"], ScriptedAgent(), workers=2))
    assert {trial.task: trial.error for trial in trials if not trial.solved} == {}
    assert len(trials) == 20


def test_the_program_of_a_plain_server_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EvaluationError, match="pipx install jupyter-mcp-server"):
        list(run_trials(["stateful/jupyter/part-time"], ScriptedAgent()))
