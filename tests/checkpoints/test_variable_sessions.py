"""Random sessions of a person and an agent, and a model that sees every object."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.checkpoints.notebook import Notebook

NAMES = "abcdefgh"
TOOLS = """
import collections
class Thing:
    shared = []
    def poke(self, item): self.item = item
    def share(self, item): Thing.shared.append(item)
class Slotted:
    __slots__ = ("left", "right")
def grow(thing, item):
    kind = type(thing)
    if kind is list or kind is collections.deque: thing.append(item)
    elif kind is dict: thing[len(thing)] = item
    elif kind is set: thing.add(id(item))
    elif kind is Thing: thing.poke(item)
    elif kind is Slotted: thing.left, thing.right = item, getattr(thing, "left", None)
    elif callable(thing): thing(item)
def shrink(thing):
    if type(thing) in (list, dict, set, collections.deque): thing.clear()
    elif type(thing) is Thing: vars(thing).clear()
def cell(start):
    held = start
    def keep(item):
        nonlocal held
        held = item
    return keep
"""


class Moment(NamedTuple):
    """The variables and the contents of all objects, by identity."""

    names: dict[str, Any]
    contents: dict[int, tuple[Any, tuple[Any, ...]]]


def content(thing: Any) -> tuple[Any, ...] | None:
    """Return an object's references, or None for an immutable one."""
    kind = type(thing)
    if kind in (list, tuple) or kind.__name__ == "deque":
        return tuple(thing)
    if kind is dict:
        return tuple(part for pair in thing.items() for part in pair)
    if kind is set:
        return tuple(sorted(thing))
    if kind.__name__ == "Thing":
        return tuple(part for pair in vars(thing).items() for part in pair)
    if kind.__name__ == "Slotted":
        return (getattr(thing, "left", None), getattr(thing, "right", None))
    if kind.__name__ == "function" and thing.__closure__:
        return tuple(cell.cell_contents for cell in thing.__closure__)
    return None


class Session:
    """A notebook, and what happened in it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.notebook = Notebook(folder)
        self.notebook.person(TOOLS)
        self.notebook.person("".join(f"def use_{n}(item): grow({n}, item)\n" for n in NAMES))
        self.notebook.person(f"{' = '.join(NAMES)} = 0")
        for name in NAMES:
            self.notebook.person(f"{name} = {self.value()}")
        self.history: list[tuple[str, int, Moment]] = []
        self.turns: list[int] = []
        self.known: dict[int, Any] = {}
        self.note("start", 0)

    def value(self) -> str:
        kinds = ("[]", "{}", "set()", "Thing()", "Slotted()", "collections.deque()", "cell(0)")
        return self.dice.choice((*kinds, "([], {})", "7", self.dice.choice(NAMES)))

    def statement(self) -> str:
        one, other = self.dice.choices(NAMES, k=2)
        forms = [
            *(f"grow({one}, {other})", f"grow({one}, {other})", f"grow({one}, [{other}])"),
            *(f"use_{one}({other})", f"exec('grow({one}, {other})')", f"shrink({one})"),
            *(f"globals()['{one}'] = {self.value()}", f"{one} = {self.value()}", f"del {one}"),
            *(f"{one}, {other} = {other}, {one}", f"Thing().share({one})"),
            f"(lambda: list(map(grow, [{one}], [{other}])))()",
        ]
        return f"try: {self.dice.choice(forms)}\nexcept NameError: pass"

    def code(self) -> str:
        return "\n".join(self.statement() for _ in range(self.dice.randrange(1, 4)))

    def moment(self) -> Moment:
        names = {name: self.notebook.variables.get(name) for name in NAMES}
        contents: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        # Objects out of reach may return.
        stack = [*names.values(), self.notebook.value("Thing.shared"), *self.known.values()]
        while stack:
            thing = stack.pop()
            inner = content(thing)
            if inner is not None and id(thing) not in contents:
                contents[id(thing)] = (thing, inner)
                self.known[id(thing)] = thing
                stack += inner
        return Moment(names, contents)

    def note(self, who: str, turn: int) -> None:
        self.history.append((who, turn, self.moment()))

    def person(self) -> None:
        self.notebook.person(self.code())
        if self.history[-1][0] == "person":
            del self.history[-1]
        self.note("person", 0)

    def agent(self) -> None:
        self.turns.append(self.notebook.agent(self.code()))
        self.note("agent", self.turns[-1])

    def rewind(self) -> None:
        """Go back, see that everything is as the model says, and perhaps forth again."""
        turn = self.dice.choice(self.turns)
        before = self.moment()
        self.notebook.rewind(turn)
        after = self.moment()
        start = next(i for i, (_, id, _) in enumerate(self.history) if id == turn)
        self.check(start, before, after)
        if self.dice.random() < 0.5:
            self.notebook.rewind(self.notebook.turn)
            assert same(self.moment(), before), "a rewind of a rewind restores everything"
        else:
            self.turns.append(self.notebook.turn)
            self.note("rewind", self.notebook.turn)

    def check(self, start: int, before: Moment, after: Moment) -> None:
        """Undo the agent's cells one by one in the model, where nobody else changed anything."""
        self.stays: set[int] = set()
        moments = [moment for _, _, moment in self.history]
        for key in after.contents:
            now = next(each for each in (before, *reversed(moments)) if key in each.contents)
            expected = self.expected_content(key, start, now)
            assert equal(key, after, expected), (after.contents[key], expected.contents[key])
        for name in NAMES:
            expected_names = self.expected_names(name, start, before)
            assert any(after.names[name] is each for each in expected_names), name

    def cells(self, start: int) -> Iterator[tuple[Moment, Moment]]:
        """Yield the moments before and after the agent's cells, the last one first."""
        for i in range(len(self.history) - 1, start - 1, -1):
            if self.history[i][0] != "person":
                yield self.history[i - 1][2], self.history[i][2]

    def expected_content(self, key: int, start: int, now: Moment) -> Moment:
        for old, new in self.cells(start):
            if key not in new.contents or key not in now.contents:
                continue
            is_made = key not in old.contents
            if not is_made and equal(key, old, new):
                continue
            if not equal(key, now, new):
                self.stays.add(key)
                return now
            now = now if is_made else old
        return now

    def expected_names(self, name: str, start: int, now: Moment) -> list[Any]:
        """Return the possible objects: those that a person changed may stay."""
        current, possible = now.names[name], []
        for old, new in self.cells(start):
            if old.names[name] is new.names[name]:
                if current is not new.names[name]:  # a person bound it since
                    possible.append(current)
            elif current is new.names[name]:
                if self.stays & reachable(new, current):
                    possible.append(current)
                current = old.names[name]
            else:
                break
        return [*possible, current]


def equal(key: int, one: Moment, other: Moment) -> bool:
    (_, left), (_, right) = one.contents[key], other.contents[key]
    return len(left) == len(right) and all(map(operator.is_, left, right))


def bound_alike(name: str, one: Moment, other: Moment) -> bool:
    return one.names[name] is other.names[name]


def same(one: Moment, other: Moment) -> bool:
    if any(not bound_alike(name, one, other) for name in NAMES):
        return False
    shared = one.contents.keys() & other.contents.keys()
    return len(shared) == len(one.contents) and all(equal(key, one, other) for key in shared)


def reachable(moment: Moment, thing: Any) -> set[int]:
    seen: set[int] = set()
    stack = [thing]
    while stack:
        current = stack.pop()
        if id(current) in moment.contents and id(current) not in seen:
            seen.add(id(current))
            stack += moment.contents[id(current)][1]
    return seen


def seeds(default: int, slow: int) -> list[object]:
    late = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(default, slow))
    return [*range(default), *late]


@pytest.mark.parametrize("seed", seeds(500, 5000))
def test_a_rewind_follows_the_model(tmp_path: Path, seed: int) -> None:
    session = Session(tmp_path, seed)
    # Storing is another matter, and would make each session ten times as long.
    session.notebook.history._store = lambda *_: None  # type: ignore[method-assign]
    for _ in range(session.dice.randrange(1, 4)):
        for _ in range(session.dice.randrange(1, 4)):
            session.agent()
            if session.dice.random() < 0.4:
                session.person()
        session.rewind()
