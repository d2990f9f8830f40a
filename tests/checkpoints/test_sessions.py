"""Random sessions of a person and an agent: no rewind costs the person a byte."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from oh_jupyter.checkpoints import Checkpoints, Limits, RewindPlan
from tests.checkpoints.workspace import Contents, contents, wait_for_the_clock

LARGE_BYTES = 1000
NAMES = (
    "a",
    "b",
    ".env",
    "out",
    "conf",
    "data",
    "m.ckpt",
    "x",
    "y.md",
    "conf/c",
    "data/d",
    "out/x",
)
NAMES += ("conf/thesis.md", "out/deep/z", "data/deep/m.ckpt", "deep", "deep/er/q")
PATTERNS = ("*.ckpt", ".env", "conf/", "out", "data/*", "/x", "deep/")


class Killed(BaseException):
    """The process of a rewind ends here."""


@contextmanager
def killed_after(steps: int) -> Iterator[None]:
    """Let everything that changes the disk fail after some steps, as if the process had died."""
    names = ("replace", "unlink", "rmdir", "mkdir", "chmod", "symlink")
    real = {name: getattr(os, name) for name in names}
    left = steps

    def dying(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return function(*args, **kwargs)

        return call

    try:
        for name, function in real.items():
            setattr(os, name, dying(function))
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


class Session:
    """A person and an agent in one workspace, and who wrote what is there."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.root = folder / "work"
        self.root.mkdir()
        self.folder = folder
        self.count = 0
        self.now: Contents = {}
        self.persons: set[str] = set()
        self.persons_modes: set[str] = set()
        self.others: set[tuple[str, object]] = set()
        self.turns: list[int] = []
        self.checkpoints = self.kernel()

    def kernel(self) -> Checkpoints:
        """A process that makes checkpoints."""
        return Checkpoints(self.root, self.folder / "kept", limits=Limits(file_bytes=LARGE_BYTES))

    def look(self, who: str) -> None:
        """Note who changed what since the last look."""
        new = contents(self.root)
        for path in self.now.keys() | new.keys():
            old_state, state = self.now.get(path), new.get(path)
            if old_state == state:
                continue
            changed = [self.persons, self.persons_modes]
            if old_state and state and old_state[0] == state[0]:
                is_same = old_state[2] == state[2], old_state[1] == state[1]
                changed = [paths for paths, same in zip(changed, is_same, strict=True) if not same]
            if who != "person":
                self.others.add((path, state))
            # What is exactly as the agent left it counts as the agent's.
            is_persons = who == "person" and state and (path, state) not in self.others
            for paths in changed:
                paths.add(path) if is_persons else paths.discard(path)
        self.now = new

    def act(self, who: str) -> None:
        """Change something, as editors, shells and programs do."""
        for _ in range(self.dice.randrange(1, 6)):
            with suppress(OSError):
                self._act(who, self.root / self.dice.choice(NAMES))
            self.look(who)

    def _act(self, who: str, path: Path) -> None:
        kinds = ("write", "write", "write", "large", "append", "delete", "delete", "chmod", "link")
        kind = self.dice.choice((*kinds, "folder", "move", "replace", "replace", "ignore"))
        self.count += 1
        text = f"{who} {self.count}\n"
        if kind == "ignore":
            rules = self.dice.sample(PATTERNS, self.dice.randrange(3))
            (self.root / ".gitignore").write_text("".join(f"{rule}\n" for rule in rules))
        elif kind == "delete":
            remove(path)
        elif kind == "chmod":
            if not path.is_symlink():
                path.chmod(self.dice.choice([0o600, 0o644, 0o755, 0o700, 0o750]))
        elif kind == "move":
            path.rename(self.root / self.dice.choice(NAMES))
        elif kind == "append":
            with path.open("a") as file:
                file.write(text)
        else:
            if kind == "replace":
                blocking = next((p for p in path.parents if p.is_file() or p.is_symlink()), path)
                remove(blocking)
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "folder":
                path.mkdir()
            elif kind == "link":
                path.symlink_to(self.dice.choice(["a", "nowhere", "data", text.strip()]))
            else:
                lines = "".join(f"{text.strip()} line {i}\n" for i in range(5))
                path.write_text(lines + (LARGE_BYTES * "x" if kind == "large" else ""))

    def turn(self) -> None:
        """Let the agent work; now and then it pauses, or its kernel is killed."""
        turn = self.checkpoints.begin("turn")
        self.turns.append(turn.id)
        self.act("agent")
        if self.dice.random() < 0.3:
            self.checkpoints.end(turn.id, is_open=True)
            self.act("agent")
        if self.dice.random() < 0.3:
            if self.dice.random() < 0.7:
                wait_for_the_clock(self.folder)
                self.checkpoints.beat()
            self.checkpoints.close()
            self.checkpoints = self.kernel()
        else:
            self.checkpoints.end(turn.id)

    def rewind(self) -> None:
        """Go back, and see that everything of the person's is as it was."""
        id, everything = self.dice.choice(self.turns), self.dice.random() < 0.3
        before = self.now
        last = self.checkpoints.entries()[-1].id
        plan = self.checkpoints.preview(id, everything=everything)
        assert contents(self.root) == before, "a preview changes nothing"
        if self.dice.random() < 0.2:
            with suppress(Killed), killed_after(self.dice.randrange(6)):
                self.checkpoints.rewind(id, everything=everything)
        else:
            done = self.checkpoints.rewind(id, everything=everything)
            assert (done.results(), done.kept.keys()) == (plan.results(), plan.kept.keys())
        after = contents(self.root)
        self._check(plan, before, after, everything)
        newest = self.checkpoints.entries()[-1].id
        if newest != last:  # it was not killed before it began
            self.turns.append(newest)
            if self.dice.random() < 0.5:
                self.checkpoints.rewind(newest)
                assert contents(self.root) == before, f"rewinding the rewind to {id}"
        self.look("rewind")

    def _check(self, plan: RewindPlan, before: Contents, after: Contents, everything: bool) -> None:
        changed = {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        }
        assert changed <= plan.results().keys(), "every change is in the preview"
        assert not changed & plan.kept.keys(), "what is kept does not change"
        if everything:
            return
        merged = {change.path for change in plan.changes if change.kind == "merge"}
        for path in self.persons:
            if path not in merged:
                assert after.get(path, ())[::2] == before[path][::2], f"the person's {path!r}"
                continue
            lines = [line for line in before[path][2].splitlines() if line.startswith(b"person")]
            assert set(lines) <= set(after[path][2].splitlines()), f"the person's in {path!r}"
        for path in self.persons_modes & after.keys():
            assert after[path][1] == before[path][1], f"the person's mode of {path!r}"


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def seeds() -> list[object]:
    thorough = (pytest.param(seed, marks=pytest.mark.thorough) for seed in range(30, 100))
    slow = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 2000))
    return [*range(30), *thorough, *slow]


@pytest.mark.parametrize("seed", seeds())
def test_no_rewind_costs_the_person_anything(tmp_path: Path, seed: int) -> None:
    session = Session(tmp_path, seed)
    session.act("person")
    session.act("person")
    for _ in range(session.dice.randrange(1, 4)):
        session.turn()
        session.act("person")
        if session.dice.random() < 0.7:
            session.rewind()
    session.act("person")
    session.rewind()
