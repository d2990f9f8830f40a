"""Repository tasks in SWE-bench's form: the agent resolves an issue, and hidden tests judge."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, Outcome
from oh_jupyter.installed import find_program

PREFIX = "repository/"
PATCH_FILE, TESTS_FILE = "model.patch", "tests.txt"
TESTS_TIMEOUT_SECONDS = 600.0
IDENTITY = ("-c", "user.name=oh_jupyter", "-c", "user.email=oh_jupyter@localhost")


@dataclass(frozen=True)
class RepositoryTask:
    """An instance of a benchmark in SWE-bench's form.

    Each episode has its own workspace and runtime: shell, editor, and their log. The agent gets
    ``goal``, ``workspace`` and the last ``observation``, and returns an Action, or a command for
    the shell as a text.

    Attributes:
        name: Name in tables.
        problem_statement: The prompt.
        test_patch: A patch that adds the hidden tests.
        fail_to_pass: Tests that fail before the change and must pass after it.
        pass_to_pass: Tests that must still pass.
        patch: A solution.
        repo: Address or path for ``git clone``; "" for ``files``.
        base_commit: Commit at which the agent starts.
        files: Contents by path, instead of ``repo``, for a small repository.
        test_command: Command that runs the tests whose names follow; ``{python}`` is this Python.
    """

    name: str
    problem_statement: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...] = ()
    patch: str = ""
    repo: str = ""
    base_commit: str = "HEAD"
    files: Mapping[str, str] = field(default_factory=dict)
    test_command: str = "{python} -m pytest -q"

    @classmethod
    def from_instance(cls, instance: Mapping[str, Any]) -> RepositoryTask:
        """Read an instance with SWE-bench's keys, and optionally ``files`` and ``test_command``.

        Args:
            instance: The instance.

        Returns:
            The task.

        Raises:
            EvaluationError: A key is missing.
        """
        repo = str(instance.get("repo", ""))
        if re.fullmatch(r"[\w.-]+/[\w.-]+", repo) and not os.path.exists(repo):
            repo = f"https://github.com/{repo}"
        more = {key: instance[key] for key in ("files", "test_command") if key in instance}
        try:
            return cls(
                instance["instance_id"],
                instance["problem_statement"],
                instance["test_patch"],
                _names(instance["FAIL_TO_PASS"]),
                _names(instance.get("PASS_TO_PASS", ())),
                instance.get("patch", ""),
                repo,
                instance.get("base_commit", "HEAD"),
                **more,
            )
        except KeyError as error:
            raise EvaluationError(f"An instance in SWE-bench's form has a key {error}.") from None

    def play(self, agent: Agent, *, seed: int, steps: int, log: EpisodeLog | None) -> Outcome:
        """Let an agent try the task; its patch is stored as ``model.patch``."""
        with tempfile.TemporaryDirectory(prefix="oh_jupyter-repository-") as temp_dir:
            workspace = Path(temp_dir, "workspace")
            self._check_out(workspace)
            base = _git(workspace, "rev-parse", "HEAD").strip()
            taken, error = self._work(workspace, agent, steps, log)
            _git(workspace, "add", "--all")
            patch = _git(workspace, "diff", "--cached", "--binary", base)
            passed, test_output = self._judge(workspace, base)
        if log is not None:
            log.path(PATCH_FILE).write_text(patch, "utf-8")
            log.path(TESTS_FILE).write_text(test_output, "utf-8")
        return Outcome(float(passed), taken, error)

    def _work(
        self, workspace: Path, agent: Agent, steps: int, log: EpisodeLog | None
    ) -> tuple[int, str]:
        """Let the agent act in a runtime; return the number of steps and the error."""
        from oh_jupyter.config import Settings
        from oh_jupyter.events import CmdRunAction
        from oh_jupyter.runtime import Runtime

        runtime = Runtime(
            Settings(workspace_dir=str(workspace), file_store="memory", plugins=(),
                     checkpoints="off", enable_browser=False)
        )  # fmt: skip
        seen: dict[str, Any] = {
            "goal": self.problem_statement, "workspace": str(workspace), "observation": None,
        }  # fmt: skip
        try:
            for taken in range(steps):
                try:
                    action = agent(seen)
                except Exception as error:  # an agent may fail in any way
                    return taken, f"{type(error).__name__}: {error}"
                if not action:
                    return taken, ""
                action = CmdRunAction(action) if isinstance(action, str) else action
                observation = runtime.submit_action(action).result()
                if log is not None:
                    log.event(action)
                    log.event(observation)
                seen["observation"] = observation
            return steps, ""
        finally:
            runtime.close()

    def _check_out(self, workspace: Path) -> None:
        if self.repo:
            _git(None, "clone", "--quiet", self.repo, str(workspace))
            _git(workspace, "checkout", "--quiet", "--detach", self.base_commit)
            return
        for name, text in self.files.items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        _git(workspace, "init", "--quiet")
        _git(workspace, "add", "--all")
        _git(workspace, *IDENTITY, "commit", "--quiet", "--message", "Begin")

    def _judge(self, workspace: Path, base: str) -> tuple[bool, str]:
        """Restore the hidden tests and run them; return whether they passed, and the output."""
        for name in re.findall(r"^\+\+\+ b/(.+)$", self.test_patch, re.MULTILINE):
            (workspace / name).unlink(missing_ok=True)
            if _git(workspace, "ls-tree", "--name-only", base, "--", name):
                _git(workspace, "checkout", "--quiet", base, "--", name)
        _git(workspace, "apply", "-", stdin=self.test_patch)
        command = shlex.split(self.test_command.format(python=shlex.quote(sys.executable)))
        try:
            done = subprocess.run(
                [*command, *self.fail_to_pass, *self.pass_to_pass],
                cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace",
                timeout=TESTS_TIMEOUT_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"The tests were not over within {TESTS_TIMEOUT_SECONDS:g} s."
        except OSError as error:
            raise EvaluationError(f"{self.name}: tests cannot be run: {error}") from error
        return done.returncode == 0, done.stdout


def load_instances(path: str | os.PathLike[str]) -> list[RepositoryTask]:
    """Read a benchmark: JSON lines with SWE-bench's keys.

    Args:
        path: The file.

    Returns:
        The tasks.

    Raises:
        EvaluationError: A line is not an instance.
    """
    tasks = []
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        try:
            tasks.append(RepositoryTask.from_instance(json.loads(line)))
        except (ValueError, TypeError, AttributeError, EvaluationError) as error:
            raise EvaluationError(f"{path}, line {number}: {error}") from error
    return tasks


def match_repository_tasks(pattern: str) -> Iterable[RepositoryTask]:
    """Return the built-in tasks that match a pattern such as ``repository/*``."""
    tasks = _small_tasks()
    matches = [task for task in tasks if fnmatchcase(task.name, pattern)]
    if not matches:
        names = ", ".join(task.name for task in tasks)
        raise EvaluationError(f"No task matches {pattern!r}. Tasks: {names}")
    return matches


@cache
def _small_tasks() -> list[RepositoryTask]:
    return load_instances(Path(__file__).with_name("repository_tasks.jsonl"))


def _names(tests: Any) -> tuple[str, ...]:
    """Return names of tests, which SWE-bench's files nest as JSON within JSON."""
    return tuple(json.loads(tests) if isinstance(tests, str) else tests)


def _git(workspace: Path | None, *arguments: str, stdin: str = "") -> str:
    """Run git; raise EvaluationError with its message if it fails."""
    where = [] if workspace is None else ["-C", str(workspace)]
    try:
        done = subprocess.run(
            [find_program("git") or "/usr/bin/git", *where, *arguments],
            input=stdin, capture_output=True, text=True,
            errors="surrogateescape", env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
        )  # fmt: skip
    except OSError as error:
        raise EvaluationError(f"Repository tasks need git: {error}") from error
    if done.returncode:
        raise EvaluationError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
