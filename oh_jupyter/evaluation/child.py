"""The process of one episode: ``python -m oh_jupyter.evaluation.child FOLDER``.

It reads its request from the folder and writes the outcome there. Its parent ends it at the
deadline.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oh_jupyter.errors import BrowserError, BrowserNotFoundError, EvaluationError, OhJupyterError
from oh_jupyter.evaluation.episode import Agent, EpisodeLog, Outcome, PlayedTask
from oh_jupyter.import_guard import importing_from_workspace

REQUEST, OUTCOME, FILES = "request.pickle", "outcome.json", "files"
"""Names in the folder: the request, the outcome, and the files to store."""


@dataclass(frozen=True)
class Player:
    """The agent with the settings that all episodes of a run share."""

    agent: Agent
    steps: int
    trace: bool
    options: Mapping[str, Any]

    def play(self, task: Any, seed: int, log: EpisodeLog | None, browsers: Any) -> Outcome:
        """Run an episode; an agent with a method ``close`` then ends what it has started."""
        try:
            return self._play(task, seed, log, browsers)
        finally:
            if close := getattr(self.agent, "close", None):
                close()

    def _play(self, task: Any, seed: int, log: EpisodeLog | None, browsers: Any) -> Outcome:
        if isinstance(task, PlayedTask):
            return task.play(self.agent, seed=seed, steps=self.steps, log=log)
        from oh_jupyter.evaluation.browser_task import play_in_browser

        try:
            env = browsers.begin(task, seed)
            return play_in_browser(env, self.agent, steps=self.steps, log=log, trace=self.trace)
        except BrowserNotFoundError:
            raise
        except BrowserError as error:
            return Outcome(0.0, 0, str(error))


def main(folder: Path) -> None:
    """Run the episode and write its outcome, or the reason why it could not start."""
    try:
        outcome: dict[str, Any] = _outcome(folder)._asdict()
    except OhJupyterError as error:
        outcome = {"refused": str(error)}
    unfinished = folder / f"{OUTCOME}.part"
    unfinished.write_text(json.dumps(outcome), "utf-8")
    unfinished.replace(folder / OUTCOME)


def _outcome(folder: Path) -> Outcome:
    from oh_jupyter.evaluation.browser_task import Browsers

    try:
        request = pickle.loads((folder / REQUEST).read_bytes())
        sys.path += [path for path in request["search"] if path not in sys.path]
        with importing_from_workspace():
            task, player = pickle.loads(request["play"])
    except Exception as error:  # importing the modules that it names may fail in any way
        raise EvaluationError(
            f"The task or the agent cannot be loaded in a process of its own: "
            f"{type(error).__name__}: {error}. Define it in the notebook, or in a module that is "
            "installed where the workers are."
        ) from error
    browsers = Browsers(player.options)
    try:
        outcome: Outcome = player.play(task, request["seed"], EpisodeLog(folder / FILES), browsers)
        return outcome
    finally:
        browsers.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
