"""Random sessions of two kernels in one workspace: rewinds undo agents' work and nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.checkpoints import Checkpoint
from oh_jupyter.config import Settings
from oh_jupyter.errors import CheckpointError
from oh_jupyter.events import Action, Actor, CmdRunAction, FileWriteAction
from oh_jupyter.runtime import Runtime, turns

STEPS = 40
OPERATIONS = ("write", "write", "write", "command", "remove", "person", "typed")
OPERATIONS += ("mark", "rewind", "rewind", "split", "begin", "end")


@pytest.fixture
def kernels(tmp_path: Path) -> Iterator[list[Runtime]]:
    root = tmp_path / "work"
    made = [Runtime(Settings(workspace_dir=str(root), file_store="memory")) for _ in range(2)]
    yield made
    for kernel in made:
        kernel.close()


class Session:
    """The first kernel's agents write files a and b, the other one's c and d, a person p to s."""

    def __init__(self, kernels: list[Runtime], seed: int) -> None:
        self.dice = random.Random(seed)
        self.kernels = kernels
        self.root = Path(kernels[0].executor.workspace_dir)
        self.announced: dict[Runtime, int | None] = {}
        self.files_at: dict[int, dict[str, str]] = {}
        """The agents' files at each checkpoint, unless within a turn that stays as a whole."""

    def files(self, names: str) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir() if path.name in names}

    def checkpoints(self) -> list[Checkpoint]:
        return self.kernels[0].executor.turns.checkpoints.entries()

    def step(self, number: int) -> None:
        kernel = self.dice.choice(self.kernels)
        before, persons = self.files("abcd"), self.files("pqrs")
        known = {entry.id for entry in self.checkpoints()}
        operation = self.dice.choice(OPERATIONS)
        try:
            getattr(self, operation)(kernel, f"{number}\n")
        except CheckpointError:
            assert operation in ("rewind", "split")
            assert self.announced.get(kernel), "an agent is working"
        entries = self.checkpoints()
        for entry in entries:
            is_within = any(other.is_open and other.id < entry.id for other in entries)
            if entry.id not in known and (entry.kind != "turn" or not is_within):
                self.files_at[entry.id] = before
        if operation not in ("person", "typed"):
            assert self.files("pqrs") == persons, operation

    def name(self, kernel: Runtime) -> str:
        return self.dice.choice("ab" if kernel is self.kernels[0] else "cd")

    def act(self, kernel: Runtime, action: Action) -> None:
        client = self.dice.choice("123")
        action.actor = Actor(client="agent", session=client)
        kernel.submit_action(action, "agent").result(60)

    def write(self, kernel: Runtime, text: str) -> None:
        self.act(kernel, FileWriteAction(self.name(kernel), text))

    def command(self, kernel: Runtime, text: str) -> None:
        self.act(kernel, CmdRunAction(f"echo {text.strip()} > {self.name(kernel)}"))

    def remove(self, kernel: Runtime, text: str) -> None:
        self.act(kernel, CmdRunAction(f"rm -f {self.name(kernel)}"))

    def person(self, kernel: Runtime, text: str) -> None:
        action = FileWriteAction(self.dice.choice("pqrs"), text)
        kernel.submit_action(action, "user").result(60)

    def typed(self, kernel: Runtime, text: str) -> None:
        """Write a file in another editor, right between two steps of agents."""
        (self.root / self.dice.choice("pqrs")).write_text(text)

    def mark(self, kernel: Runtime, text: str) -> None:
        kernel.submit(kernel.executor.turns.mark(text)).result(60)

    def split(self, kernel: Runtime, text: str) -> None:
        actor = Actor(client="agent", session="1")
        kernel.submit(kernel.executor.turns.split(text, actor)).result(60)

    def begin(self, kernel: Runtime, text: str) -> None:
        if self.announced.get(kernel) is None:
            started = kernel.executor.turns.begin(text, "claude")
            self.announced[kernel] = kernel.submit(started).result(60)

    def end(self, kernel: Runtime, text: str) -> None:
        async def end() -> None:
            if recording := kernel.executor.turns.end(self.announced.pop(kernel, None)):
                await recording

        kernel.submit(end()).result(60)

    def rewind(self, kernel: Runtime, text: str) -> None:
        if self.files_at:
            id = self.dice.choice(sorted(self.files_at))
            rewind = kernel.executor.turns.rewind(id, turns.Scope(), preview=False)
            kernel.submit(rewind).result(60)
            assert self.files("abcd") == self.files_at[id]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]
)
def test_a_random_session(kernels: list[Runtime], seed: int) -> None:
    session = Session(kernels, seed)
    for number in range(STEPS):
        session.step(number)
