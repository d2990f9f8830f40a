"""Repository tasks: the workspace of an episode, and hidden tests that judge it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation import RepositoryTask, Results, load_instances, run_trials
from oh_jupyter.evaluation.repository_task import match_repository_tasks
from oh_jupyter.events import FileEditAction

TASKS = {task.problem_statement: task for task in match_repository_tasks("repository/*")}


def reference(seen: dict[str, Any]) -> str:
    """Applies the solution that comes with the task."""
    if seen["observation"] is not None:
        return ""
    return f"git apply - <<'END'\n{TASKS[seen['goal']].patch}END"


@pytest.mark.thorough
def test_the_small_tasks_are_failed_and_solved(tmp_path: Path) -> None:
    assert {trial.reward for trial in run_trials(["repository/*"], lambda _: "")} == {0.0}
    out = tmp_path / "run.jsonl"
    solved = list(run_trials(["repository/*"], reference, out=out))
    assert [(trial.reward, trial.error) for trial in solved] == [(1.0, "")] * len(TASKS)
    results = Results(out)
    kinds = [event.get("action") or event["observation"] for event in results.events(solved[0])]
    assert kinds == ["run", "run"]
    patch = results.store.read(results.file_path(solved[0], "model.patch"))
    assert patch == next(iter(TASKS.values())).patch


def test_the_editor_works_and_tests_cannot_be_bent(tmp_path: Path) -> None:
    def cheat(seen: dict[str, Any]) -> Any:
        if seen["observation"] is None:
            return FileEditAction(
                path=f"{seen['workspace']}/test_statistic.py", command="create", file_text="# none"
            )
        return "" if "rm" in str(seen["observation"]) else "git rm -q --cached statistic.py"

    (trial,) = run_trials(["repository/median"], cheat, steps=3)
    assert (trial.reward, trial.error) == (0.0, "")


def test_instances_in_the_form_of_swe_bench(tmp_path: Path) -> None:
    instance = {
        "instance_id": "x__y-1", "repo": "x/y", "base_commit": "abc", "problem_statement": "p",
        "patch": "", "test_patch": "t", "FAIL_TO_PASS": '["a"]', "PASS_TO_PASS": "[]",
    }  # fmt: skip
    path = tmp_path / "bench.jsonl"
    path.write_text(json.dumps(instance))
    assert load_instances(path) == [
        RepositoryTask("x__y-1", "p", "t", ("a",), (), "", "https://github.com/x/y", "abc")
    ]
    path.write_text("{}")
    with pytest.raises(EvaluationError, match=r"line 1: .*has a key 'instance_id'"):
        load_instances(path)
