"""A notebook's session in a process of its own, which is killed while an agent works."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.checkpoints.notebook import Notebook

NAMES = "abcdef"
LOG = "session.jsonl"
MAX_CELLS = 60

TOOLS = """
class Thing:
    def __init__(self, *items): self.items = list(items)
    def __repr__(self): return f"Thing({self.items})"
def add(container, number):
    if isinstance(container, dict): container[number] = [number]
    elif isinstance(container, Thing): container.items.append(number)
    else: container.append(number)
def closing(number):
    held = [number]
    def closed(more): held.append(more)
    closed.held = held
    return closed
a, b, c, d, e, f = [1], {2: [2]}, Thing(3), [4], {5: [5]}, [6]
"""


class Moment(NamedTuple):
    """The variables as texts, and the names of equal objects."""

    texts: dict[str, str]
    aliases: list[list[str]]


def moment(variables: dict[str, Any]) -> Moment:
    """Read the variables; no number is in two of them unless they share an object."""
    present = {name: variables[name] for name in NAMES if name in variables}
    groups: dict[int, list[str]] = {}
    for name, value in present.items():
        groups.setdefault(id(value), []).append(name)
    return Moment({name: repr(value) for name, value in present.items()}, list(groups.values()))


def statements(dice: random.Random, numbers: Iterator[int]) -> str:
    """Return code that changes variables."""
    one, other = dice.sample(NAMES, 2)
    forms = (
        *(f"add({one}, {next(numbers)})",) * 3,
        f"{one} = [{next(numbers)}]",
        f"{one} = {{0: [{next(numbers)}]}}",
        f"{one} = Thing({next(numbers)})",
        f"{one} = {other}",
        f"{one}, {other} = {other}, {one}",
        f"exec('add({one}, {next(numbers)})')",
        f"globals()['{one}'] = Thing({next(numbers)}, {next(numbers)})",
        f"(lambda thing: add(thing, {next(numbers)}))({one})",
        f"{one} = [{other}, {next(numbers)}] if len(repr({other})) < 200 else [{next(numbers)}]",
        f"{one} = ({other}, {next(numbers)}); {one} = list({one}[1:])",
    )
    return dice.choice(forms)


def work(folder: Path, seed: int) -> None:
    """Run cells of a person and an agent, and log each before and after it runs."""
    dice, numbers = random.Random(seed), iter(range(10, 10_000_000))
    notebook = Notebook(folder)
    notebook.person(TOOLS)
    with open(folder / LOG, "w") as log:
        for turn in range(1, MAX_CELLS + 1):
            if dice.random() < 0.4:
                notebook.person(statements(dice, numbers))
            code = "\n".join(statements(dice, numbers) for _ in range(dice.randrange(1, 4)))
            before = moment(notebook.variables)
            print(json.dumps({"turn": turn, "before": before}), file=log, flush=True)
            notebook.agent(code)
            after = moment(notebook.variables)
            print(json.dumps({"turn": turn, "after": after}), file=log, flush=True)
