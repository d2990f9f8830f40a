"""A person works while an agent's prompt runs in a kernel, and rewinds it."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest_runtime import SCRIPTED, command

from oh_jupyter.testing import LiveKernel, wait_until
from tests.other_program import OtherProgram

MARGIN_SECONDS = 0.2
"""How long before and after the person's change the agent changes nothing."""

SEEDS = [
    *range(2),
    *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 8)),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100)),
]


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[LiveKernel]:
    settings = {
        "OH_JUPYTER_AGENTS": json.dumps({"scripted": command(SCRIPTED)}),
        "OH_JUPYTER_CONFIRMATION": "never",
        "OH_JUPYTER_CHECKPOINTS": "auto",
    }
    os.environ.update(settings)
    (tmp_path / "work").mkdir()
    try:
        live = LiveKernel(tmp_path / "work")
    finally:
        for name in settings:
            del os.environ[name]
    yield live
    live.close()


class Person:
    """A person's program, and the files if only the person had worked."""

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root, self.dice, self.number = root, dice, 0
        self.files: dict[str, str] = {}
        self.program = OtherProgram(root)

    def work(self) -> None:
        """Change one file."""
        self.number += 1
        name, text = self.dice.choice(("p1", "p2", "both1", "both2")), f"person {self.number}\n"
        kind = self.dice.choice(("write", "write", "program", "remove", "rename"))
        if kind in ("write", "program"):
            statement = f"open({name!r}, 'w').write({text!r})"
            program = f"subprocess.run({f'printf {text!r} > {name}'!r}, shell=True, check=True)"
            self.program.do(statement if kind == "write" else program)
            self.files[name] = text
        elif name not in self.files or not (self.root / name).exists():
            return
        elif kind == "remove":
            self.program.do(f"os.remove({name!r})")
            del self.files[name]
        else:
            self.program.do(f"os.rename({name!r}, 'p-{self.number}')")
            del self.files[name]
            self.files[f"p-{self.number}"] = (self.root / f"p-{self.number}").read_text()

    def work_at(self, marks: list[Path]) -> None:
        """Change a file after each mark, as soon as the agent has set it."""
        for mark in marks:
            wait_until(mark.exists)
            time.sleep(self.dice.choice((0, 0.05, 0.1)))
            self.work()


def agents_line(dice: random.Random, number: int) -> str:
    """Return a step of the agent."""
    name, text = dice.choice(("a1", "a2", "both1", "both2")), f"agent {number}"
    return dice.choice(
        (
            f"write {name}: {text}",
            f"run echo {text} > {name}",
            f"shell echo {text} > {name}",
            f"run rm -f {name}",
            f"shell rm -f {name}",
            f"run mv {name} moved{number}",
            f"run sleep 0.1; echo {text} > {name}; sleep {MARGIN_SECONDS}",
        )
    )


def files(root: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in root.iterdir() if path.is_file()}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rewind_leaves_the_persons_variables(kernel: LiveKernel, seed: int) -> None:
    root, dice = kernel.directory, random.Random(seed)
    person = Person(root, dice)
    for _ in range(3):
        person.work()
    marks = [root.parent / f"mark{number}" for number in range(dice.randrange(3, 7))]
    lines = []
    for number, mark in enumerate(marks):
        pause = f"pause {2 * MARGIN_SECONDS}"
        during = f"run touch {mark}; sleep {2 * MARGIN_SECONDS}"
        between = dice.choice(
            (f"run touch {mark}\n{pause}", f"shell touch {mark}\n{pause}", during)
        )
        lines += [agents_line(dice, number), between]
    lines.append(agents_line(dice, len(marks)))
    working = threading.Thread(target=person.work_at, args=[marks])
    working.start()
    kernel.execute("%%oh_agent scripted\n" + "\n".join(lines))
    working.join()
    person.work()
    before = files(root)
    kernel.execute("plan = oh.rewind(oh.agents.turns[-1])")
    assert files(root) == person.files, (lines, kernel.execute("print(plan)"))
    kernel.execute("oh.rewind(oh.checkpoints[-1].id)")
    assert files(root) == before
    person.program.close()


@pytest.mark.thorough
def test_a_persons_cell_during_the_agents_own_tool_is_the_persons(kernel: LiveKernel) -> None:
    root = kernel.directory
    began, go = root.parent / "began", root.parent / "go"
    wait = f"touch {began}; until [ -e {go} ]; do sleep 0.05; done"
    kernel.execute(f"%%oh_agent scripted &\nshell echo agent > a1; {wait}; echo agent > a2")
    wait_until(began.exists)
    kernel.execute("open('mine', 'w').write('mine')\n!cp mine copy; (sleep 60 &) > /dev/null 2>&1")
    go.touch()
    kernel.execute("import time\nwhile not oh.agents.turns[-1].stop_reason: time.sleep(0.05)")
    assert files(root).keys() == {"a1", "a2", "mine", "copy"}
    kernel.execute("oh.rewind(oh.agents.turns[-1])")
    expected = {"mine", "copy"}
    if os.geteuid() != 0:  # the system does not name the processes
        expected = expected & files(root).keys()
    assert files(root).keys() == expected
