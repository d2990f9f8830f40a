"""``oh-jupyter evaluate``: agents by name, a run that is killed and continued, and its logs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.agents import AgentCommand
from oh_jupyter.cli import main
from oh_jupyter.config import Settings
from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation import EpisodeLog, Results, run_trials
from oh_jupyter.evaluation.agents_by_name import find_agent
from oh_jupyter.evaluation.command_agent import CommandAgent
from oh_jupyter.evaluation.harness_task import HarnessAgent, HarnessTask, match_harness_tasks
from oh_jupyter.evaluation.stateful import ScriptedAgent, StatefulTask, Turn
from oh_jupyter.testing import wait_until

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "oh_jupyter.cli"]
GIVES_UP = """
import json, os, sys
for line in sys.stdin:
    seen = json.loads(line)
    open(sys.argv[1], "a").write(seen["goal"][:10] + "\\n")
    while os.path.exists(sys.argv[2]) and "duration" in seen["goal"]:
        __import__("time").sleep(0.05)
    print(json.dumps("" if seen["observation"] else {"action": "run", "args": {"command": "pwd"}}))
    sys.stdout.flush()
"""


@pytest.fixture
def command(tmp_path: Path) -> str:
    """An agent that is a program, notes each observation, and waits while there is a gate."""
    path = tmp_path / "agent.py"
    path.write_text(GIVES_UP)
    return f"{sys.executable} {path} {tmp_path / 'notes'} {tmp_path / 'gate'}"


@pytest.mark.thorough
def test_each_episode_has_one_result_after_a_kill(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out, gate, notes = tmp_path / "run.jsonl", tmp_path / "gate", tmp_path / "notes"
    gate.touch()
    options = ["evaluate", "repository/*", "--agent", command, "--out", str(out)]
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.DEVNULL) as running:
        wait_until(lambda: Results(out).find("repository/median", 0), timeout_seconds=120)
        wait_until(lambda: "timing.dur" in notes.read_text(), timeout_seconds=120)
        running.send_signal(signal.SIGKILL)
    gate.unlink()
    assert main(options) == 0
    printed = capsys.readouterr().out
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    names = ["repository/duration", "repository/median", "repository/rename"]
    assert sorted(row["task"] for row in rows) == names
    assert {row["ended"] for row in rows} == {"finished"}
    first = [line for line in printed.splitlines() if line.startswith("failed")]
    assert len(first) == 3
    goals = notes.read_text().splitlines()
    assert goals.count("median([4,") == 2, "the episode before the kill was not repeated"
    assert goals.count("timing.dur") == 3, "the killed episode was"
    assert main(["evaluate", "show", str(out), "repository/median", "0"]) == 0
    shown = capsys.readouterr().out
    assert "run              Running command: pwd" in shown
    assert f"%oh_log --file {tmp_path}/run/episodes/repository%2Fmedian/0/events.jsonl" in shown


@pytest.mark.thorough
def test_a_table_a_plot_and_dask(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("distributed")
    plot = tmp_path / "plot.png"
    options = ["--agent", command, "--plot", str(plot), "--by-group", "--dask", "local"]
    assert main(["evaluate", "repository/median", "repository/rename", *options]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^repository/\* +0 +2 +0% to 66% ", printed, re.MULTILINE)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert main(["evaluate", "repository/median", "--agent", command, "--dask", "nowhere:x"]) == 1
    assert "The Dask scheduler nowhere:x cannot be reached" in capsys.readouterr().err


def test_wrong_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for words, message in (
        (["repository/*"], "Name an agent, such as --agent scripted"),
        (["repository/*", "--agent", "none"], "There is no agent 'none'. Name one of scripted,"),
        (["repository/*", "--agent", "no.such:f"], "The agent no.such:f cannot be imported: Mod"),
        (["repository/*", "--agent", "os:sep"], "which is no function"),
        (["nothing/*", "--agent", "scripted"], "nothing/*"),
        (["repository/*", "--agent", "scripted", "--out", "x.txt"], "ends in .jsonl"),
        (["repository/*", "--agent", "scripted", "--workers", "0"], "workers is a number of 1"),
        (["show", f"{tmp_path}/none.jsonl"], "There are no results in"),
        (["show"], "Say which"),
        (["harbor", "--agent", "scripted"], "does not say which"),
    ):
        os.environ |= {"OH_URL": "http://127.0.0.1:9"} if words[0] == "harbor" else {}
        assert main(["evaluate", *words]) == 1
        assert message in capsys.readouterr().err
    del os.environ["OH_URL"]


def test_agents_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(agents={"mine": f"{sys.executable} -m mine"})
    assert isinstance(find_agent("scripted", settings), ScriptedAgent)
    assert find_agent("inspect:openai/gpt-5", settings) == HarnessAgent("inspect", "openai/gpt-5")
    command = find_agent(f"{sys.executable} -c pass", settings)
    assert isinstance(command, CommandAgent)
    with pytest.raises(EvaluationError, match=r"ended without an action|before it read"):
        command({"goal": "x"})
    command.close()
    (tmp_path / "agent_of_test.py").write_text("def act(seen):\n    return seen['goal']\n")
    monkeypatch.chdir(tmp_path)
    assert find_agent("agent_of_test:act", settings)({"goal": "x"}) == "x"
    pytest.importorskip("acp")
    from oh_jupyter.evaluation.acp_agent import AcpAgent

    agent = find_agent("mine", settings)
    assert isinstance(agent, AcpAgent)
    assert agent.command == AgentCommand("mine", (sys.executable, "-m", "mine"))


def test_a_line_that_is_no_json(tmp_path: Path) -> None:
    agent = CommandAgent([sys.executable, "-c", "input(); print('hello', flush=True); input()"])
    with pytest.raises(EvaluationError, match="wrote 'hello', not a line of JSON"):
        agent({"goal": "x"})
    agent.close()


@pytest.fixture
def acp_agent() -> Any:
    """The agent of the examples, which carries out the lines of its prompt."""
    pytest.importorskip("acp")
    from oh_jupyter.evaluation.acp_agent import AcpAgent

    program = str(ROOT / "examples" / "scripted_agent.py")
    agent = AcpAgent(AgentCommand("scripted", (sys.executable, program)))
    yield agent
    agent.close()


@pytest.mark.thorough
def test_an_agent_of_the_protocol_does_stateful_work(acp_agent: Any, tmp_path: Path) -> None:
    code = json.dumps({"command": "echo 6 >number; cat number"})
    asked = (
        Turn(f"tool bash {code}\nsay ANSWER: 6", "6"),
        Turn(f"tool bash {json.dumps({'command': 'cat number'})}\nsay ANSWER: 7", "6"),
    )
    task = StatefulTask("small", "bash", asked, (), ())
    outcome = task.play(acp_agent, seed=0, steps=3, log=EpisodeLog(tmp_path))
    assert (outcome.reward, outcome.measures["right"], outcome.measures["calls"]) == (0.0, 1, 2)
    assert outcome.measures["read_chars"] >= 2
    assert outcome.error.startswith("turn 2: '7', not '6'")
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["args"]["arguments"] for event in events if event.get("action") == (
        "call_tool_mcp"
    )] == [json.loads(code), {"command": "cat number"}]  # fmt: skip


PRESSES = """
import json, re, sys
for line in sys.stdin:
    buttons = re.findall(r"\\[(\\w+)\\] button", json.loads(line)["axtree_txt"])
    print(json.dumps(f"click({buttons[0]!r})" if buttons else ""), flush=True)
"""


@pytest.mark.browser
@pytest.mark.thorough
def test_programs_act_in_a_page(acp_agent: Any, tmp_path: Path) -> None:
    program = tmp_path / "presses.py"
    program.write_text(PRESSES)
    agent = CommandAgent([sys.executable, str(program)])
    (trial,) = run_trials(["oh_jupyter/click-button"], agent, workers=1, steps=2)
    assert trial.steps == 1, trial.error
    # It repeats its prompt, whose examples are actions on elements that are not there.
    (trial,) = run_trials(["oh_jupyter/click-button"], acp_agent, steps=1)
    assert "Could not find element" in trial.error


def test_tasks_of_a_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").touch()
    tasks = match_harness_tasks(f"harbor/{tmp_path}")
    assert [task.target for task in tasks] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert list(match_harness_tasks("harbor/dabstep@1.0")) == [HarnessTask("harbor", "dabstep@1.0")]
    with pytest.raises(EvaluationError, match=r"no task\.toml in"):
        match_harness_tasks(f"harbor/{Path(__file__).parent}")
    monkeypatch.setenv("PATH", str(tmp_path))
    played = {"seed": 0, "steps": 1, "log": None}
    with pytest.raises(EvaluationError, match=r"pip install 'oh_jupyter\[harbor\]'"):
        HarnessTask("harbor", "x").play(ScriptedAgent(), **played)
    if importlib.util.find_spec("inspect_ai") is None:
        with pytest.raises(EvaluationError, match=r"pip install 'oh_jupyter\[inspect-ai\]'"):
            HarnessTask("inspect", "x").play(ScriptedAgent(), **played)
    with pytest.raises(EvaluationError, match="needs an agent of its harness: inspect:NAME"):
        HarnessTask("inspect", "x").play(HarnessAgent("harbor", "oracle"), **played)
    with pytest.raises(EvaluationError, match="is for tasks named harbor/"):
        HarnessAgent("harbor", "oracle")({})
