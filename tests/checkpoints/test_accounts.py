"""Two processes record the same changes, at different moments, and one undoes them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from oh_jupyter.checkpoints.accounts import one_account
from oh_jupyter.checkpoints.disk import State
from oh_jupyter.checkpoints.rewind import joined_writes
from oh_jupyter.checkpoints.steps import Author, Step, Write

OWNERS = {1: "a", 2: "b"}
STEPS = {number: Step(number, number, owner, "job", 0.0, None) for number, owner in OWNERS.items()}


def file(text: str) -> State:
    return State("file", 0o644, text)


def history(dice: random.Random) -> list[tuple[State | None, int]]:
    """Return the states of a file, each with the step that made it; each truncates it first."""
    states: list[tuple[State | None, int]] = [(dice.choice((None, file("person"))), 0)]
    for step in dice.choices((1, 2), k=dice.randrange(1, 4)):
        states += [(file(""), step), (file(f"late {len(states)}"), step)]
    return states


def account(
    states: Sequence[tuple[State | None, int]], recorder: str, moments: Sequence[int]
) -> Iterator[Write]:
    """Yield what a process records that looks at some moments."""
    seen = states[0][0]
    for moment in moments:
        state, step = states[moment]
        if state != seen:
            yield Write("file", seen, state, "agent", step, step, recorder=recorder)
        seen = state


def interleaved(dice: random.Random, *accounts: Iterator[Write]) -> Iterator[Write]:
    remaining = [list(each) for each in accounts]
    while any(remaining):
        yield dice.choice([each for each in remaining if each]).pop(0)


def undone(writes: Sequence[Write], state: State | None) -> State | None:
    for undo in reversed(joined_writes(writes)):
        if state != undo.old:
            assert state == undo.new, "nothing has to be merged"
            state = undo.old
    return state


@pytest.mark.parametrize("seed", range(300))
def test_changes_of_jobs_are_undone_by_the_process_that_has_just_looked(seed: int) -> None:
    dice = random.Random(seed)
    states = history(dice)
    moments = range(1, len(states))
    mine = [moment for moment in moments[:-1] if dice.random() < 0.5] + [moments[-1]]
    others = [moment for moment in moments if dice.random() < 0.5]
    *earlier, last = account(states, "a", mine)
    writes = [*interleaved(dice, iter(earlier), account(states, "b", others)), last]
    assert undone(one_account(writes, STEPS, "a"), states[-1][0]) == states[0][0]


def write(recorder: str, author: Author, old: str, new: str, step: int = 0) -> Write:
    return Write("file", file(old), file(new), author, step, step, recorder=recorder)


def test_an_agents_change_that_was_taken_for_others_stays_an_agents() -> None:
    writes = [write("a", "others", "x", "y"), write("b", "agent", "x", "y", 2)]
    assert one_account(writes, STEPS, "a") == writes


def test_what_happened_before_a_process_looked_stays() -> None:
    writes = [write("b", "agent", "x", "y", 2), write("a", "agent", "y", "z", 1)]
    assert one_account(writes, STEPS, "a") == writes


def test_a_rewind_by_another_process_stays() -> None:
    writes = [
        write("a", "agent", "x", "y", 1),
        write("a", "others", "y", "x"),
        write("b", "rewind", "y", "x"),
    ]
    assert one_account(writes, STEPS, "a") == writes


def test_what_happened_after_a_process_looked_stays() -> None:
    seen = write("a", "agent", "x", "y", 1), write("b", "others", "x", "y")
    later = write("b", "agent", "y", "z", 2)
    assert one_account([*seen, later], STEPS, "a") == [*seen, later]


def test_a_person_that_another_process_has_seen_stays() -> None:
    seen = [write("b", "others", "x", "y"), write("b", "agent", "y", "z", 2)]
    assert one_account([*seen, write("a", "agent", "x", "z", 2)], STEPS, "a") == seen


def test_an_agent_behind_a_person_that_another_process_has_seen_stays() -> None:
    seen = [write("b", "agent", "x", "y", 2), write("b", "others", "y", "z")]
    assert one_account([*seen, write("a", "others", "x", "z")], STEPS, "a")[:2] == seen


def test_accounts_of_other_processes_are_kept_once() -> None:
    first, same = write("b", "agent", "x", "y", 2), write("c", "agent", "x", "y", 2)
    assert one_account([first, same], STEPS, "a") == [first]
    coalesced = write("b", "agent", "x", "z", 2)
    assert one_account([write("c", "agent", "y", "z", 2), coalesced], STEPS, "a") == [coalesced]
