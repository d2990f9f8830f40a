"""A stateful task: its prompts as data, its reference solution, and the checkers of its answers."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, Outcome
from oh_jupyter.evaluation.stateful.environments import ENVIRONMENTS, open_environment, write_table
from oh_jupyter.installed import python_environment

PREFIX = "stateful/"
TRANSCRIPT_FILE = "transcript.jsonl"
IMPORTS = "import numpy as np\nimport pandas as pd"
MAX_RELATIVE_DIFFERENCE = 1e-6
INSTRUCTION = "End your reply with a line that has ANSWER: and the value, and nothing else."

_ANSWER = re.compile(r"^\W*ANSWER:\W*?(-?\S.*?)\W*$", re.MULTILINE)
_REFERENCE = """
import contextlib, io, json, os, sys, tempfile
request = json.load(sys.stdin)
answers = []
for number, (code, expression) in enumerate(request["turns"]):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in request["tables"].items():
            open(name, "w", newline="").write(text)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
        answers.append(str(eval(expression, names)))
        if number == len(request["turns"]) - 1:
            files = {name: open(name, newline="").read() if os.path.exists(name) else None
                     for name in request["files"]}
        os.chdir("/")
print(json.dumps({"answers": answers, "files": files}))
"""


@dataclass(frozen=True)
class Turn:
    """One prompt of a task, with its reference solution.

    Attributes:
        ask: The prompt.
        answer: Expression for the answer, in the state of the solution.
        step: Code that changes the state.
        suppose: Code that changes the state for this answer only.
        back_to: Number of the turn to whose state the task first returns; 0 for none.
    """

    ask: str
    answer: str
    step: str = ""
    suppose: str = ""
    back_to: int = 0


@dataclass(frozen=True)
class StatefulTask:
    """Data work over several prompts, in one of the environments.

    An agent is called until it has answered each prompt. It gets ``goal`` (the prompt), ``task``,
    ``environment``, ``turn`` (from 1 on), ``turns``, ``workspace``, ``tools`` (as in MCP), and the
    text of its last call as ``observation``, None at the beginning of a turn. It returns a call,
    ``{"tool": …, "arguments": …}``, or its reply as a text. An agent with a method ``converse`` is
    given the environment's MCP servers instead, and each prompt once.

    Attributes:
        title: Its name, without that of the environment.
        environment: One of ``ENVIRONMENTS``.
        turns: The prompts.
        tables: Tables in the workspace, generated from the seed.
        keep: Variables that hold the state.
        files: Files whose contents are compared at the end.
    """

    title: str
    environment: str
    turns: tuple[Turn, ...]
    tables: tuple[str, ...]
    keep: tuple[str, ...]
    files: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{PREFIX}{self.environment}/{self.title}"

    def steps(self, turn: int) -> list[str]:
        """Return the code that leads to the state after a turn, without detours."""
        if turn == 0:
            return [IMPORTS]
        this = self.turns[turn - 1]
        earlier = self.steps(this.back_to or turn - 1)
        return [*earlier, this.step.strip()] if this.step else earlier

    def expected(self, seed: int) -> dict[str, Any]:
        """Return ``answers`` and ``files`` of the reference solution, without any detours."""
        with tempfile.TemporaryDirectory(prefix="oh_jupyter-stateful-") as folder:
            self.write_tables(seed, Path(folder))
            tables = {path.name: path.read_text("utf-8") for path in Path(folder).iterdir()}
        turns = [
            ("\n".join([*self.steps(number), turn.suppose]), turn.answer)
            for number, turn in enumerate(self.turns, 1)
        ]
        request = {"turns": turns, "tables": tables, "files": self.files}
        done = subprocess.run(
            [sys.executable, "-P", "-c", _REFERENCE],
            input=json.dumps(request), capture_output=True, text=True, env=python_environment(),
        )  # fmt: skip
        if done.returncode:
            hint = "" if "'pandas'" not in done.stderr else ": pip install 'oh_jupyter[tables]'"
            reason = done.stderr.strip().rpartition("\n")[2]
            raise EvaluationError(f"The solution of {self.name} cannot be run: {reason}{hint}")
        expected: dict[str, Any] = json.loads(done.stdout)
        return expected

    def write_tables(self, seed: int, folder: Path) -> None:
        """Write the tables of a seed."""
        for name in self.tables:
            write_table(name, seed, folder)

    def play(self, agent: Agent, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        """Let an agent try the task; it is solved if all answers and files are right.

        ``steps`` limits the calls of each turn. The measures are explained in the guide.
        """
        from oh_jupyter.evaluation.stateful.conversation import converse

        expected = self.expected(seed)
        with tempfile.TemporaryDirectory(prefix="oh_jupyter-stateful-") as temp_dir:
            workspace = Path(temp_dir, "workspace")
            workspace.mkdir()
            self.write_tables(seed, workspace)
            error, right = "", 0
            about = {
                "task": self,
                "environment": self.environment,
                "turns": len(self.turns),
                "workspace": str(workspace),
            }
            with (
                open_environment(self.environment, workspace, Path(temp_dir)) as environment,
                converse(agent, about, environment, workspace, steps, log) as conversation,
            ):
                start = time.monotonic()
                for number, turn in enumerate(self.turns, 1):
                    try:
                        reply = conversation.ask(number, self._prompt(number, environment.hint))
                    except Exception as failure:  # an agent may fail in any way
                        error = f"turn {number}: {type(failure).__name__}: {failure}"
                        break
                    answer = expected["answers"][number - 1]
                    if is_right(reply, answer):
                        right += 1
                    elif not error:
                        error = f"turn {number}: {_stated(reply)!r}, not {answer!r}: {turn.ask}"
                seconds = time.monotonic() - start
                measures = {
                    **conversation.measures, "work_seconds": round(seconds, 3),
                    "turns": len(self.turns), "right": right,
                }  # fmt: skip
            wrong = wrong_files(expected["files"], workspace)
        if wrong and not error:
            error = f"At the end, {', '.join(wrong)} is not as expected"
        is_solved = right == len(self.turns) and not wrong
        return Outcome(float(is_solved), int(measures["calls"]), error, measures)

    def _prompt(self, number: int, hint: str) -> str:
        parts = [self.turns[number - 1].ask, INSTRUCTION]
        return "\n\n".join([hint, *parts] if number == 1 else parts)


def _stated(reply: str) -> str:
    """Return the answer of a reply: after its last ANSWER:, or "" without one."""
    matches = _ANSWER.findall(reply)
    return matches[-1].strip() if matches else ""


def is_right(reply: str, expected: str) -> bool:
    """Return whether the answer of a reply is the expected one, as numbers or as texts."""
    stated, wanted = (
        [part.strip(" '\"`*").casefold() for part in text.split(",")]
        for text in (_without_grouping(_stated(reply)), expected)
    )
    return len(stated) == len(wanted) and all(map(_is_same, stated, wanted))


def _without_grouping(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)


def _is_same(stated: str, wanted: str) -> bool:
    try:
        return math.isclose(float(stated), float(wanted), rel_tol=MAX_RELATIVE_DIFFERENCE)
    except ValueError:
        return stated == wanted


def wrong_files(expected: Mapping[str, str | None], workspace: Path) -> list[str]:
    """Return the names of files that are missing, differ, or should not be there."""
    wrong = []
    for name, contents in expected.items():
        path = workspace / name
        actual = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
        if actual != contents:
            wrong.append(name)
    return wrong


def match_stateful_tasks(pattern: str) -> Iterable[StatefulTask]:
    """Return the tasks that match a pattern such as ``stateful/bash/*``."""
    tasks = _tasks()
    matches = [task for task in tasks if fnmatchcase(task.name, pattern)]
    if not matches:
        titles = ", ".join(dict.fromkeys(task.title for task in tasks))
        raise EvaluationError(
            f"No task matches {pattern!r}. Stateful tasks are {PREFIX}ENVIRONMENT/TITLE; "
            f"environments: {', '.join(ENVIRONMENTS)}; titles: {titles}"
        )
    return matches


@cache
def _tasks() -> tuple[StatefulTask, ...]:
    import yaml

    described = yaml.safe_load(Path(__file__).with_name("tasks.yaml").read_text("utf-8"))
    return tuple(
        StatefulTask(
            each["name"],
            environment,
            tuple(Turn(**turn) for turn in each["turns"]),
            *(tuple(each.get(name, ())) for name in ("tables", "keep", "files")),
        )
        for environment in ENVIRONMENTS
        for each in described
    )
