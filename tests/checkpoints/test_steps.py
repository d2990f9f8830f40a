"""Steps of agents in a workspace, whether the system names the process of a change or not."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.checkpoints import Checkpoints, Limits, tracker, watch
from oh_jupyter.checkpoints.snapshot import states
from tests.checkpoints.workspace import contents, work

SOURCES = ["fanotify", "inotify", "none"]


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name == "fanotify" and os.geteuid() != 0:
        pytest.skip("fanotify needs a privilege")
    if name == "inotify":
        monkeypatch.setattr(watch, "_open_source", lambda root: watch._Inotify())
    elif name == "none":
        monkeypatch.setattr(watch, "file_system", lambda path: "nfs4")
    return name


@pytest.fixture
def checkpoints(source: str, root: Path, tmp_path: Path) -> Iterator[Checkpoints]:
    made = Checkpoints(root, tmp_path / "kept", is_watched=True, limits=Limits(file_bytes=10_000))
    yield made
    made.close()


def step(checkpoints: Checkpoints, turn: int, label: str = "work") -> int:
    return checkpoints.begin_step(label, turn=turn, root=os.getpid())


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(i, marks=pytest.mark.slow) for i in range(5, 300))]
)
def test_random_steps_are_undone_to_the_byte(
    root: Path, checkpoints: Checkpoints, seed: int
) -> None:
    dice = random.Random(seed)
    for _ in range(dice.randrange(20)):
        work(root, dice)
    begin = contents(root)
    turn = checkpoints.begin("turn", in_steps=True).id
    for _ in range(5):
        number = step(checkpoints, turn)
        for _ in range(dice.randrange(1, 8)):
            work(root, dice)
        checkpoints.end_step(number)
    with checkpoints._locked() as git:
        known = states(git, checkpoints._take(git))
        if checkpoints.events_fd is not None:
            assert checkpoints._tracker._states == known, "the watch has missed nothing"
    last = contents(root)
    checkpoints.rewind(turn)
    assert contents(root) == begin
    checkpoints.rewind(checkpoints.entries()[-1].id)
    assert contents(root) == last


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(i, marks=pytest.mark.slow) for i in range(5, 300))]
)
def test_changes_between_steps_stay(root: Path, checkpoints: Checkpoints, seed: int) -> None:
    """The agent and the person work in folders of their own, without a pause."""
    dice = random.Random(seed)
    for name in ("agent", "person"):
        (root / name).mkdir()
        for _ in range(5):
            work(root / name, dice)
    agents = contents(root / "agent")
    turn = checkpoints.begin("turn", in_steps=True).id
    for _ in range(6):
        for _ in range(dice.randrange(3)):
            work(root / "person", dice)
        number = step(checkpoints, turn)
        work(root / "agent", dice)
        checkpoints.end_step(number)
    work(root / "person", dice)
    persons = contents(root / "person")
    checkpoints.rewind(turn)
    assert contents(root / "agent") == agents
    assert contents(root / "person") == persons


def test_new_rules_and_repositories_are_followed(root: Path, checkpoints: Checkpoints) -> None:
    (root / "stored.log").write_text("old\n")
    turn = checkpoints.begin("turn", in_steps=True).id
    for change in (
        lambda: (root / ".gitignore").write_text("*.log\nbuild/\n"),
        lambda: (root / "stored.log").write_text("agent\n"),
        lambda: (root / "new.log").write_text("agent\n"),
        lambda: (root / "build" / "deep").mkdir(parents=True),
        lambda: (root / "build" / "deep" / "a").write_text("agent\n"),
        lambda: subprocess.run(["git", "init", "-q", root / "inner"], check=True),
        lambda: (root / "inner" / "a").write_text("agent\n"),
        lambda: (root / "large").write_bytes(b"x" * 20_000),
        lambda: os.mkfifo(root / "pipe"),
    ):
        number = step(checkpoints, turn)
        change()
        checkpoints.end_step(number)
    plan = checkpoints.rewind(turn)
    assert {each.path: each.kind for each in plan.changes} == {
        ".gitignore": "delete",
        "inner/a": "delete",
        "stored.log": "restore",
    }
    assert (root / "stored.log").read_text() == "old\n"
    assert (root / "new.log").exists()
    assert (root / "build" / "deep" / "a").exists()


def test_the_workspace_itself_is_replaced(root: Path, checkpoints: Checkpoints) -> None:
    (root / "a").write_text("old\n")
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn)
    shutil.rmtree(root)
    root.mkdir()
    checkpoints.end_step(number)
    number = step(checkpoints, turn)
    (root / "b").write_text("agent\n")
    checkpoints.end_step(number)
    checkpoints.rewind(turn)
    assert contents(root) == {"a": ("file", 0o644, b"old\n")}


def test_many_files_in_a_step(root: Path, checkpoints: Checkpoints) -> None:
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn)
    for i in range(700):
        (root / str(i % 7)).mkdir(exist_ok=True)
        (root / str(i % 7) / f"{i}").write_text("agent\n")
    checkpoints.end_step(number)
    (root / "1" / "mine").write_text("mine\n")
    plan = checkpoints.rewind(turn)
    assert len(plan.changes) == 700
    assert sorted(contents(root)) == ["1", "1/mine"]


def test_a_lost_event_is_made_up_for(root: Path, checkpoints: Checkpoints, source: str) -> None:
    if source == "none":
        pytest.skip("nothing is watched")
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn)
    for i in range(9000):  # more than the queue holds
        for name in (f"x{i}", f"y{i}"):
            (root / name).touch()
            (root / name).unlink()
    (root / "last").write_text("agent\n")
    checkpoints.end_step(number)
    assert [each.path for each in checkpoints.rewind(turn).changes] == ["last"]


def test_another_process_during_a_step(root: Path, checkpoints: Checkpoints, source: str) -> None:
    """The test's own process does the step, and a program that init has adopted is another's."""
    program = "import os, sys, time\nos.fork() and sys.exit()\nos.setsid()\n" \
        "while not os.path.exists('../go'): time.sleep(0.01)\n" \
        "open('mine', 'w').write('mine'); open('done', 'w').close(); time.sleep(60)"  # fmt: skip
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn)
    (root / "agents").write_text("agent\n")
    (root.parent / "go").touch()
    deadline = time.monotonic() + 60
    while not (root / "done").exists():
        assert time.monotonic() < deadline
    checkpoints.end_step(number)
    plan = checkpoints.rewind(turn)
    changed = {each.path for each in plan.changes}
    assert changed == ({"agents"} if source == "fanotify" else {"agents", "mine", "done"})


def test_late_work_of_a_process_that_a_step_started(
    root: Path, checkpoints: Checkpoints, source: str
) -> None:
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn, "python train.py &")
    program = "import time; log = open('log', 'w'); input(); log.write('late'); log.flush();" \
        "open('model', 'w').write('late'); print(flush=True); input()"  # fmt: skip
    job = subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdin=-1, stdout=-1, text=True, bufsize=1
    )
    assert job.stdin is not None
    assert job.stdout is not None
    while not (root / "log").exists():
        pass
    checkpoints.end_step(number)
    (root / "mine").write_text("mine")
    checkpoints.look()
    job.stdin.write("\n")
    job.stdout.readline()
    checkpoints.look()
    job.communicate("\n")
    plan = checkpoints.rewind(turn)
    listed = {each.path for each in plan.changes} | plan.kept.keys()
    assert {"log", "model"} <= listed
    assert (root / "mine").read_text() == "mine"
    if source == "fanotify":
        assert {each.path for each in plan.changes} == {"log", "model"}
    elif source == "inotify":
        assert plan.kept["model"] == "changed while 'python train.py &' was running"
        checkpoints.rewind(turn, path="model")
        assert not (root / "model").exists()


JOB = "input(); open('model', 'w').write('late'); print(flush=True); input()"
"""A program that changes a file at a line of input, and ends at another."""


@pytest.fixture
def job(root: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    with contextlib.ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            command = [sys.executable, "-c", JOB]
            started = subprocess.Popen(command, cwd=root, stdin=-1, stdout=-1, text=True, bufsize=1)
            return stack.enter_context(started)

        yield start


def work_late(job: subprocess.Popen[str]) -> None:
    assert job.stdin is not None
    assert job.stdout is not None
    job.stdin.write("\n")
    job.stdout.readline()


@pytest.fixture
def other(source: str, root: Path, tmp_path: Path) -> Iterator[Checkpoints]:
    """The same checkpoints in another process, as far as it can be seen."""
    if source != "fanotify":
        pytest.skip("processes have no names")
    with contextlib.closing(Checkpoints(root, tmp_path / "kept", is_watched=True)) as made:
        yield made


@pytest.fixture
def late_work(
    checkpoints: Checkpoints, other: Checkpoints, job: Callable[[], subprocess.Popen[str]]
) -> Callable[[], None]:
    """Change a file by a job of the first turn, after a step of the other process."""
    turn = checkpoints.begin("turn", in_steps=True).id
    number = step(checkpoints, turn)
    started = job()
    checkpoints.end_step(number)
    others = other.begin("turn", in_steps=True).id
    other.end_step(other.begin_step("work", turn=others))
    return lambda: work_late(started)


def write_as_agent(checkpoints: Checkpoints, path: Path) -> None:
    number = checkpoints.begin_step("write", turn=checkpoints.entries()[-1].id)
    path.write_text("agent\n")
    checkpoints.end_step(number, [str(path)])


def test_another_process_knows_the_late_work_of_an_agent(
    root: Path, other: Checkpoints, late_work: Callable[[], None]
) -> None:
    late_work()  # and its own process does not look
    (root / "mine").write_text("mine")
    other.rewind(1)
    assert sorted(contents(root)) == ["mine"]
    other.rewind(other.entries()[-1].id)
    assert sorted(contents(root)) == ["mine", "model"]


@pytest.mark.parametrize("is_owner_first", [True, False])
def test_late_work_that_two_processes_record_is_undone_once(
    root: Path,
    checkpoints: Checkpoints,
    other: Checkpoints,
    late_work: Callable[[], None],
    is_owner_first: bool,
) -> None:
    write_as_agent(other, root / "model")
    checkpoints.look()
    number = other.begin_step("more work", turn=other.entries()[-1].id)
    late_work()
    for process in (checkpoints, other) if is_owner_first else (other, checkpoints):
        process.look()
    other.end_step(number)
    recorders = [each.recorder for each in other._steps.writes() if each.turn == 1]
    assert set(recorders) == {checkpoints.process, other.process}
    assert (recorders[0] == checkpoints.process) == is_owner_first
    other.rewind(1)
    assert contents(root) == {}


def test_late_work_is_restored_that_its_process_records_after_a_rewind(
    root: Path, checkpoints: Checkpoints, other: Checkpoints, late_work: Callable[[], None]
) -> None:
    write_as_agent(other, root / "model")
    late_work()
    other.rewind(1)
    assert contents(root) == {}
    seen = [each for each in other._steps.writes() if each.turn == 1]
    checkpoints._steps.add(seen, checkpoints.process)  # what it saw before the rewind
    other.rewind(other.entries()[-1].id)
    assert (root / "model").read_text() == "late"
    other.rewind(1)
    assert contents(root) == {}


def test_the_jobs_of_a_dead_process_are_forgotten(
    root: Path, checkpoints: Checkpoints, other: Checkpoints, late_work: Callable[[], None]
) -> None:
    assert [owner for owner, _ in other._steps.jobs()] == [checkpoints.process]
    assert checkpoints._owner is not None
    checkpoints._owner.close()  # as when it is killed
    other.settle()
    assert other._steps.jobs() == []


def test_a_job_that_ends_with_its_step(
    root: Path,
    checkpoints: Checkpoints,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    job: Callable[[], subprocess.Popen[str]],
) -> None:
    if source != "fanotify":
        pytest.skip("processes have no names")
    turn = checkpoints.begin("turn", in_steps=True).id
    number, started = step(checkpoints, turn), job()
    look = checkpoints._tracker.look

    def look_then_work(*arguments: Any) -> Any:
        monkeypatch.undo()
        differences = look(*arguments)
        work_late(started)
        started.communicate("\n")
        return differences

    monkeypatch.setattr(checkpoints._tracker, "look", look_then_work)
    checkpoints.end_step(number)
    assert [each.path for each in checkpoints.rewind(turn).changes] == ["model"]


def test_a_rewind_of_some_turns_leaves_the_others(root: Path, checkpoints: Checkpoints) -> None:
    turns = []
    for name in "abc":
        turns.append(checkpoints.begin(name, in_steps=True).id)
        number = step(checkpoints, turns[-1])
        (root / name).write_text("agent\n")
        checkpoints.end_step(number)
        checkpoints.end(turns[-1])
    checkpoints.rewind(turns[0], turns=[turns[0], turns[2]])
    assert sorted(contents(root)) == ["b"]


def test_writes_of_the_agents_process_belong_to_the_turn(
    root: Path, checkpoints: Checkpoints, source: str
) -> None:
    turn = checkpoints.begin("prompt", in_steps=True, process=os.getpid()).id
    (root / "its").write_text("agent\n")
    checkpoints.end(turn)
    (root / "mine").write_text("mine\n")
    checkpoints.rewind(turn)
    assert sorted(contents(root)) == (["mine"] if source == "fanotify" else ["its", "mine"])


def test_a_process_from_before_a_turn_is_not_its_job(root: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(root, tmp_path / "kept")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, text=True) as earlier:
        turn = checkpoints.begin("turn")
        (root / "its").write_text("agent\n")
        checkpoints.end(turn.id)
        (root / "mine").write_text("mine\n")
        assert not checkpoints.preview(turn.id).kept
        earlier.communicate("\n")


def test_without_a_log_of_processes_those_that_run_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise PermissionError(errno.EACCES, "refused")

    monkeypatch.setattr(tracker, "ProcessLog", refuse)
    with contextlib.closing(Checkpoints(root, root.parent / "state", is_watched=True)) as made:
        turn = made.begin("turn", in_steps=True).id
        number = step(made, turn)
        (root / "agents").write_text("agent\n")
        made.end_step(number)
        assert made.attribution in (tracker.BY_RUNNING_PROCESS, tracker.BY_STEP)
        assert [each.path for each in made.rewind(turn).changes] == ["agents"]
