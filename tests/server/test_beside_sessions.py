"""Random sessions of a person beside agents: a rewind leaves exactly what the person made."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from beside import Workplace, open_session

from oh_jupyter.sandbox import find_engine
from oh_jupyter.testing import LiveServer, run_server

SEEDS = [
    *(0, 1, 171),  # in the last one, two kernels see the same removal
    *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 12)),
    *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 300) if seed != 171),
]
names_processes = pytest.mark.skipif(
    os.geteuid() != 0, reason="the system names processes only with a privilege"
)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return running servers by the value of their setting ``sandbox``."""
    running: dict[str, LiveServer] = {}
    with ExitStack() as stack:

        def of(sandbox: str) -> LiveServer:
            if sandbox not in running:
                environment = {"OH_JUPYTER_CHECKPOINTS": "auto", "OH_JUPYTER_SANDBOX": sandbox}
                folder = tmp_path_factory.mktemp(f"server-{sandbox}")
                running[sandbox] = stack.enter_context(run_server(folder, environment=environment))
            return running[sandbox]

        yield of


@pytest.fixture
def workplace(
    servers: Any, seed: int, sandbox: str, request: pytest.FixtureRequest
) -> Iterator[Workplace]:
    if sandbox == "required" and find_engine() is None:
        pytest.skip("this machine can make no sandbox")
    name = f"work{abs(hash(request.node.name)):x}"
    with open_session(servers(sandbox), name, 1 + seed % 2) as session:
        made = Workplace(session, random.Random(seed))
        for _ in range(3):
            made.person()
        session.run("true")
        yield made


def check(workplace: Workplace) -> None:
    """See that a rewind leaves what the person made, and that another rewind undoes it."""
    before = workplace.session.files()
    plan = workplace.session.rewind()
    after = workplace.session.files()
    listed = {path: before[path] for path in plan["kept"] if path in before}
    unlisted = {path: text for path, text in after.items() if path not in listed}
    expected = {path: text for path, text in workplace.files.items() if path not in listed}
    assert unlisted == expected, plan
    workplace.session.rewind(workplace.session.last_checkpoint())
    assert workplace.session.files() == before


@pytest.mark.parametrize("sandbox", ["off", "required"])
@pytest.mark.parametrize("seed", SEEDS)
def test_while_the_agent_thinks(workplace: Workplace) -> None:
    for _ in range(workplace.dice.randrange(3, 9)):
        for _ in range(workplace.dice.randrange(3)):
            workplace.person()
            time.sleep(workplace.dice.choice((0, 0, 0.05, 0.2)))
        workplace.agent()
    for _ in range(workplace.dice.randrange(3)):
        workplace.person()
    check(workplace)


@names_processes
@pytest.mark.parametrize("sandbox", ["off", "required"])
@pytest.mark.parametrize("seed", SEEDS)
def test_during_steps(workplace: Workplace) -> None:
    for _ in range(workplace.dice.randrange(2, 6)):
        workplace.dice.choice(
            (workplace.agent, workplace.during, workplace.during, workplace.person)
        )()
    check(workplace)


@names_processes
@pytest.mark.parametrize("sandbox", ["off"])
@pytest.mark.parametrize("seed", SEEDS)
def test_beside_programs_in_the_background(workplace: Workplace) -> None:
    for _ in range(workplace.dice.randrange(2, 6)):
        workplace.dice.choice((workplace.start_job, workplace.agent, workplace.person))()
    workplace.wait_for_jobs()
    check(workplace)
