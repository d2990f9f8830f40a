"""Evals of Inspect and tasks of Harbor by ``oh-jupyter evaluate``, on a kernel's machine."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest

from oh_jupyter.evaluation import Results, run_trials
from oh_jupyter.evaluation.harness_task import HarnessAgent
from oh_jupyter.evaluation.stateful import ScriptedAgent
from oh_jupyter.testing import LiveServer

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def address(live_server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OH_URL", live_server.url)
    monkeypatch.setenv("OH_TOKEN", live_server.token)


EVAL = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import includes
from inspect_ai.solver import solver
from inspect_ai.util import sandbox


@solver
def reader():  # without a model, which would download a tokenizer
    async def solve(state, generate):
        done = await sandbox().exec(["cat", "hello.txt"])
        state.output = ModelOutput.from_content("none", done.stdout)
        return state

    return solve


@task
def probe():
    samples = [Sample(input="?", target="hello", files={"hello.txt": text})
               for text in ("hello", "bye")]
    return Task(dataset=samples, solver=reader(), scorer=includes(), sandbox="oh_jupyter")
"""


@pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="needs inspect-ai")
def test_an_eval_of_inspect(tmp_path: Path) -> None:
    out, file = tmp_path / "run.jsonl", tmp_path / "probe.py"
    file.write_text(EVAL)
    (trial,) = run_trials([f"inspect/{file}@probe"], ScriptedAgent(), workers=1, out=out)
    assert (trial.reward, trial.steps, trial.error) == (0.5, 2, "")
    assert trial.measures["includes accuracy"] == 0.5
    paths = Results(out).files(trial)
    assert any(path.endswith(".json") and "/inspect/" in path for path in paths)
    agent = HarnessAgent("inspect", "nothing/model")
    (trial,) = run_trials([f"inspect/{file}@probe"], agent, workers=1)
    assert "nothing" in trial.error


@pytest.mark.skipif(shutil.which("harbor") is None, reason="needs harbor and Python 3.12")
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_task_of_harbor(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    name = f"harbor/{EXAMPLES}/harbor_task"
    (trial,) = run_trials([name], ScriptedAgent(), workers=1, out=out)
    assert (trial.reward, trial.error) == (1.0, "")
    assert trial.measures == {"trials": 1.0, "trials_solved": 1.0}
    assert any(path.endswith("/result.json") for path in Results(out).files(trial))
    (trial,) = run_trials([name], HarnessAgent("harbor", "nop"), workers=1)
    assert (trial.reward, trial.solved) == (0.0, False)
