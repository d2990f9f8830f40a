"""A real bash for each test, without the start-up files of the user who runs the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oh_jupyter.events import CmdOutputObservation, CmdRunAction
from oh_jupyter.sandbox import Box, Profile, find_engine
from oh_jupyter.shell import BashSession, ShellSession

Run = Callable[..., CmdOutputObservation]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    directory.mkdir()
    return directory


@pytest.fixture(params=["plain", pytest.param("sandbox", marks=pytest.mark.thorough)])
def enclosure(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Box | None]:
    """No sandbox, and one in which a test may use all of its folder."""
    if request.param == "plain":
        yield None
        return
    engine = find_engine()
    if engine.program is None:
        pytest.skip(engine.sentence)
    box = Box(Profile(writable=(str(tmp_path),)), engine)
    yield box
    box.close()


@pytest.fixture
def session(tmp_path: Path, home: Path, enclosure: Box | None) -> Iterator[BashSession]:
    work_dir = tmp_path / "work"
    work_dir.mkdir()
    with BashSession(
        work_dir,
        no_change_timeout_seconds=60,
        env={**os.environ, "HOME": str(home)},
        enclosure=enclosure,
    ) as running:
        yield running


class Gate:
    """Barrier at which a command waits, by ``read x <GATE``, until a test opens it.

    Each opening lets one reader through: the next reader waits at a FIFO of its own.
    """

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def open(self) -> None:
        following = self.path.with_name(f"{self.path.name}.following")
        os.mkfifo(following)
        with self.path.open("w") as reader_waits:
            following.replace(self.path)
            reader_waits.write("go\n")


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


@pytest.fixture
def run(session: ShellSession) -> Run:
    """Run a command and insist on a ``run`` observation."""

    def run(command: str, timeout: float | None = None, **arguments: object) -> object:
        action = CmdRunAction(command, **arguments)  # type: ignore[arg-type]
        action.timeout = timeout
        observation = session.execute(action)
        assert isinstance(observation, CmdOutputObservation), observation
        return observation

    return run  # type: ignore[return-value]


@pytest.fixture
def start(session: ShellSession, run: Run) -> Run:
    """Run a long command, or give it input; return all its output until it is idle.

    Part of that may be named in ``shown``: a loaded machine takes its time between two writes.
    """

    def start(
        command: str, shown: str | Callable[[str], bool] = "", **arguments: object
    ) -> CmdOutputObservation:
        is_shown = shown if callable(shown) else lambda content: shown in content
        patient, session.NO_CHANGE_TIMEOUT_SECONDS = session.NO_CHANGE_TIMEOUT_SECONDS, 0.2
        try:
            observation = run(command, **arguments)
            content = observation.content
            while not is_shown(content):
                assert observation.exit_code == -1, f"{shown!r} is not in {content!r}"
                observation = run("")
                content += observation.content
        finally:
            session.NO_CHANGE_TIMEOUT_SECONDS = patient
        assert observation.exit_code == -1, f"it has ended: {content!r}"
        observation.content = content
        return observation

    return start
