"""Random sessions of an agent in a box and a person beside it: no canary is touched.

A session is a sequence of commands in the box, operations of the agent and ordinary commands of
the person in a fresh workspace. An agent's question is never approved. ``OH_JUPYTER_TEST_ESCAPES``
sets the number of sessions, ``OH_JUPYTER_TEST_ESCAPE_SEED`` the seed of the first; the message of a
failure names the seed that repeats it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from oh_jupyter.sandbox import find_engine
from oh_jupyter.testing import LiveKernel, run_server
from tests.sandbox.escape_doors import Door, KernelDoor, RestDoor, ServerKernel
from tests.sandbox.escape_operations import operation
from tests.sandbox.escape_person import GIT, Command, command
from tests.sandbox.escape_plants import all_modules, plant
from tests.sandbox.escape_world import World, make_world

pytestmark = pytest.mark.skipif(
    find_engine().program is None or os.uname().sysname != "Linux",
    reason="needs bubblewrap, and user namespaces",
)

SESSIONS_OF_A_KERNEL = 20
SLOW_SESSIONS_OF_A_KERNEL = 100
ATTEMPTS = 8
"""Repetitions of an operation at a path that changes, which must meet it in several states."""

REST_SESSIONS, SLOW_REST_SESSIONS = 20, 100
KEY = "key-of-the-agents"

USUAL = 20
"""Number of sessions without those of the slow tests."""

FIRST_SEED = int(os.environ.get("OH_JUPYTER_TEST_ESCAPE_SEED", "0"))
CHOSEN = os.environ.get("OH_JUPYTER_TEST_ESCAPES")
"""Number of sessions that someone has chosen."""

ALL = 2000
"""Number of sessions with those of the slow tests."""

SETTINGS = {
    "SANDBOX": "required",
    "CONFIRMATION": "risky",
    "CONFIRMATION_TIMEOUT": "0.03",  # nobody answers
    "CHECKPOINTS": "auto",
    "ENABLE_BROWSER": "false",
}


Start = Callable[[World], tuple[LiveKernel, Door]]
"""Starts a kernel in a world; returns it and the agent's way to it."""


def start_kernel(world: World) -> tuple[LiveKernel, Door]:
    """Start a kernel that an agent reaches by its control channel."""
    kernel = LiveKernel(world.work)
    return kernel, KernelDoor(kernel)


class Session:
    """A kernel on a machine, and the moves of both sides; one session follows the other.

    Attributes:
        world: The machine.
        moves: Names of the moves since the session began.
    """

    def __init__(self, world: World, start: Start) -> None:
        self.world = world
        self.moves: list[str] = []
        self._start = start
        self._kernel, self._door = start(world)

    def cell(self, code: str) -> str:
        """Run a cell of the person's."""
        return self._kernel.execute(code)

    def session_id(self) -> str:
        """Return the id of the kernel's event log."""
        return str(self._kernel.ask("status")[0]["generation"])

    def end_shell(self) -> None:
        """End the shells with all of their processes."""
        self._kernel.ask("end_resource", kind="shell", name="")

    def new_kernel(self) -> None:
        """Replace the kernel by a new one, as a person does."""
        self._kernel.close()
        self._kernel, self._door = self._start(self.world)

    def close(self) -> None:
        """End the kernel."""
        self._kernel.close()

    def attempt_outside(self) -> None:
        """Let the agent's code approve what waits, and ask for a change outside."""
        code = (
            "def approve(*arguments):\n    get_ipython().run_line_magic('oh_confirm', '--all')\n"
            "get_ipython().events.register('post_run_cell', approve)"
        )
        self._door.act("run_ipython", code=code)
        action = {"action": "write", "args": {"path": f"{self.world.outside}/new", "content": "x"}}
        self._kernel.send("execute_action", {"action": action}, by_agent=True)

    def run(self, dice: random.Random) -> None:
        """Do some random moves in a fresh workspace, and look for what they have touched."""
        self.end_shell()
        self.world.renew()
        self.moves = []
        self.world.fired()
        before = self.world.snapshot()
        for _ in range(dice.randrange(5, 11)):
            chance = dice.random()
            if chance < 0.45:
                self._plant(dice)
            elif chance < 0.75:
                self._operate(dice)
            else:
                self._person(command(dice))
        self._person(dice.choice(GIT))
        after = self.world.snapshot()
        changed = [path for path in before | after if before.get(path) != after.get(path)]
        assert changed == [], "files outside of the workspace have changed"
        assert self.world.planted() == [], "a person's programs run what the agent wrote"

    def use_a_new_kernel(self) -> None:
        """Start a kernel among planted modules, and use the parts that import when needed."""
        self.moves = ["agent's box: every module", "person: a new kernel, and its parts"]
        self._door.act("run", command=all_modules(self.world))
        self.new_kernel()
        code, book = f"{self.world.work}/new.py", f"{self.world.work}/book.ipynb"
        for arguments in (
            {"command": "create", "path": code, "file_text": "x = 1\nprint(x)\n"},
            {"command": "str_replace", "path": code, "old_str": "print(x)", "new_str": "print(y)",
             "enable_linting": True},
            {"command": "notebook_edit", "path": book, "cell": 0, "new_str": "2 + 2"},
            {"command": "view", "path": f"{self.world.work}/a.pdf"},
        ):  # fmt: skip
            if arguments["command"] == "view":
                self._door.act("write", path=arguments["path"], content="%PDF-1.4 broken")
            self._check(self._door.act("edit", **arguments))
        # A person's document is converted outside of a box.
        view = f"_ = oh.edit('view', '{self.world.work}/a.pdf')"
        for line in ("%oh_store ls", "%oh_run git status", "%oh_rewind", "%oh_status", view):
            self.cell(line)
        self._check("")

    def _plant(self, dice: random.Random) -> None:
        planted = plant(dice, self.world)
        self.moves.append(f"agent's box: {planted.command}")
        self._check(self._door.act("run", command=planted.command))
        if planted.path:
            self._operate(dice, planted.path)

    def _operate(self, dice: random.Random, path: str = "") -> None:
        """Do an operation, several times at a path that a plant has prepared."""
        name, operate = operation(dice, self.world, path)
        self.moves.append(f"agent: {name}")
        for _ in range(ATTEMPTS if path else 1):
            self._check(operate(self._door))

    def _person(self, chosen: Command) -> None:
        self.moves.append(f"person: {chosen.name}")
        chosen.call(self)
        self._check("", chosen.runs)

    def _check(self, seen: str, runs: tuple[str, ...] = ()) -> None:
        """Check that the agent saw no secret, and that only what was asked for has run."""
        assert self.world.secret not in seen, "the agent has read a secret"
        fired = [line for line in self.world.fired() if not line.startswith(runs or ("\0",))]
        assert fired == [], "a program of the agent ran outside of its box"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], None]:
    """Give this process, and so the kernel, the variables of a world."""

    def apply(world: World) -> None:
        for name, value in world.environment().items():
            monkeypatch.setenv(name, value)
        for name, value in SETTINGS.items():
            monkeypatch.setenv(f"OH_JUPYTER_{name}", value)

    return apply


@contextmanager
def session_in(world: World, start: Start = start_kernel) -> Iterator[Session]:
    session = Session(world, start)
    try:
        yield session
    finally:
        session.close()


def run_all(session: Session, seeds: range, name: str) -> None:
    """Run sessions; the message of a failure says how to repeat it."""
    for seed in seeds:
        try:
            session.run(random.Random(seed))
            if seed == seeds[-1]:
                session.use_a_new_kernel()
        except AssertionError as error:
            moves = "\n  ".join(session.moves)
            again = f"OH_JUPYTER_TEST_ESCAPE_SEED={seed} OH_JUPYTER_TEST_ESCAPES=1 pytest -k {name}"
            error.add_note(f"{again} repeats it:\n  {moves}")
            raise


def batches() -> list[object]:
    """Return ranges of seeds whose sessions share a machine; odd ones have a home as workspace."""
    end = FIRST_SEED + int(CHOSEN or ALL)
    usual = end if CHOSEN else FIRST_SEED + USUAL
    chosen = [*_ranges(FIRST_SEED, usual, SESSIONS_OF_A_KERNEL)]
    slow = _ranges(usual, end, SLOW_SESSIONS_OF_A_KERNEL)
    return [*chosen, *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in slow)]


def _ranges(first: int, end: int, size: int) -> Iterator[range]:
    """Yield ranges of seeds that are all even or all odd."""
    for start in range(first, end, 2 * size):
        for each in (start, start + 1):
            if each < end:
                yield range(each, min(start + 2 * size, end), 2)


@pytest.mark.parametrize("seeds", batches(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_no_canary_is_touched(seeds: range, environment: Callable[[World], None]) -> None:
    with make_world(home_is_workspace=bool(seeds[0] % 2)) as world:
        environment(world)
        with session_in(world) as session:
            run_all(session, seeds, "canary")


def rest_seeds() -> list[object]:
    """Return the seeds of the sessions over REST, most of them for the slow tests."""
    if CHOSEN:
        return [range(FIRST_SEED, FIRST_SEED + int(CHOSEN))]
    usual = range(FIRST_SEED, FIRST_SEED + REST_SESSIONS)
    slow = range(usual.stop, usual.stop + SLOW_REST_SESSIONS)
    return [
        pytest.param(usual, marks=pytest.mark.thorough),
        pytest.param(slow, marks=pytest.mark.slow),
    ]


@pytest.mark.parametrize("seeds", rest_seeds(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_nothing_is_touched_over_rest(seeds: range, environment: Callable[[World], None]) -> None:
    with make_world(home_is_workspace=False) as world:
        environment(world)
        variables = {**world.environment(), **{f"OH_JUPYTER_{k}": v for k, v in SETTINGS.items()}}
        variables["SESSION_API_KEY"] = KEY
        with run_server(world.home, environment=variables) as server:

            def start(world: World) -> tuple[LiveKernel, Door]:
                kernel = ServerKernel(server, world.root / "runtime")
                return kernel, RestDoor(server, kernel.id, KEY)

            with session_in(world, start) as session:
                run_all(session, seeds, "rest")
