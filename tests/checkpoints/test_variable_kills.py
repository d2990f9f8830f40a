"""Random sessions of a person and an agent that end by ``kill -9``, and what returns."""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.testing import wait_until
from tests.checkpoints.killed_session import LOG, NAMES, TOOLS, Moment, moment, work
from tests.checkpoints.notebook import Notebook

pytest.importorskip("cloudpickle")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


@pytest.fixture(scope="module")
def processes() -> Any:
    """Processes that are forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.checkpoints.killed_session", "cloudpickle"])
    return context


class Log:
    """The moments before and after the agent's cells, as far as they were written."""

    def __init__(self, path: Path) -> None:
        self.before: dict[int, Moment] = {}
        self.after: dict[int, Moment] = {}
        for line in path.read_text().splitlines():
            try:
                entry = json.loads(line)
            except ValueError:  # the last line
                break
            for name in ("before", "after"):
                if name in entry:
                    getattr(self, name)[entry["turn"]] = Moment(*entry[name])

    def changed(self, turn: int) -> list[str]:
        """Return the variables that a cell changed."""
        before, after = self.before[turn].texts, self.after[turn].texts
        return [name for name in before if before[name] != after.get(name)]


def count_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def kill_at_random(processes: Any, folder: Path, seed: int) -> Log:
    """Start a session, and kill it after some cells, at any moment."""
    dice = random.Random(seed)
    process = processes.Process(target=work, args=(folder, seed))
    process.start()
    try:
        least = dice.randrange(2, 20)
        wait_until(
            lambda: count_lines(folder / LOG) >= least or not process.is_alive(),
            what="the cells",
        )
        process.join(dice.uniform(0, 0.02))
    finally:
        process.kill()
        process.join(60)
    return Log(folder / LOG)


@pytest.mark.parametrize(
    "seed",
    [*range(50), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(50, 500))],
)
def test_restored_variables_are_unchanged_after_a_kill(
    processes: Any, tmp_path: Path, seed: int
) -> None:
    log = kill_at_random(processes, tmp_path, seed)
    fresh = Notebook(tmp_path, max(log.before))
    fresh.person(TOOLS + f"del {', '.join(NAMES)}")
    stored = [record.checkpoint for record in fresh.history._files.records()]
    ended = [turn for turn in log.after if log.changed(turn)]
    known = [turn for turn in stored if turn in log.after]
    assert known == ended[: len(known)], "records are stored in order, and none is missing"
    assert len(stored) - len(known) <= 1, "only the last cell may be stored and not logged"
    if not known:
        return
    first = random.Random(seed).choice(known)
    rows = fresh.rewind(first)
    assert {outcome for outcome, _ in rows.values()} <= {"rebound"}, rows
    expected: dict[str, int] = {}
    for turn in known:
        if turn >= first:
            for name in log.changed(turn):
                expected.setdefault(name, turn)
    assert expected.keys() <= rows.keys()
    now = moment(fresh.variables)
    for name, turn in expected.items():
        assert now.texts[name] == log.before[turn].texts[name], (name, turn)
    for turn in set(expected.values()):
        names = {name for name, each in expected.items() if each == turn}
        before = [names & set(group) for group in log.before[turn].aliases if names & set(group)]
        after = [names & set(group) for group in now.aliases if names & set(group)]
        assert sorted(map(sorted, before)) == sorted(map(sorted, after)), "aliases return"
