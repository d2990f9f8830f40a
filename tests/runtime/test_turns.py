"""Turns of agents begin and end at checkpoints, without being told to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.checkpoints import Checkpoints
from oh_jupyter.config import Settings
from oh_jupyter.errors import CheckpointError, ConfigError
from oh_jupyter.events import (
    Actor,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from oh_jupyter.runtime import Runtime, turns
from oh_jupyter.testing import wait_until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "work"


def make(root: Path, **settings: Any) -> Runtime:
    return Runtime(Settings(workspace_dir=str(root), **{"file_store": "memory", **settings}))


@pytest.fixture
def runtime(root: Path) -> Iterator[Runtime]:
    made = make(root)
    yield made
    made.close()


def write(runtime: Runtime, path: str, text: str, source: str = "agent") -> None:
    runtime.submit_action(FileWriteAction(path, text), source).result(60)


def rewind(runtime: Runtime, id: int, everything: bool = False) -> Any:
    scope = turns.Scope(everything=everything)
    coroutine = runtime.executor.turns.rewind(id, scope, preview=False)
    return runtime.submit(coroutine).result(60)


def end(runtime: Runtime, id: int | None) -> None:
    async def call() -> None:
        runtime.executor.turns.end(id)

    runtime.submit(call()).result(60)


def labels(runtime: Runtime) -> list[tuple[str, str]]:
    return [(entry.kind, entry.label) for entry in runtime.executor.turns.checkpoints.entries()]


def test_a_turn_begins_with_the_first_action_that_may_change_files(
    runtime: Runtime, root: Path
) -> None:
    (root / "a.txt").write_text("before\n")
    runtime.submit_action(FileReadAction("a.txt")).result(60)
    assert labels(runtime) == []
    write(runtime, "a.txt", "by the agent")
    runtime.submit_action(CmdRunAction("echo shell > b.txt; mkdir c; rm a.txt")).result(60)
    assert labels(runtime) == [("turn", "write a.txt")]
    assert str(rewind(runtime, 1)) == "create      a.txt\ndelete      b.txt\nrmdir       c"
    assert sorted(path.name for path in root.iterdir()) == ["a.txt"]
    assert (root / "a.txt").read_text() == "before\n"


def test_a_log_in_the_workspace_is_not_part_of_it(root: Path) -> None:
    runtime = make(root, file_store="local", file_store_path=str(root / "store"))
    try:
        write(runtime, "a.txt", "agent")
        write(runtime, "b.txt", "agent")
        plan = rewind(runtime, 1, everything=True)
        assert [change.path for change in plan.changes] == ["a.txt", "b.txt"]
        assert len(list(root.glob("store/sessions/*/events/*.json"))) == 4
    finally:
        runtime.close()


def test_a_persons_action_ends_a_turn_and_stays(runtime: Runtime, root: Path) -> None:
    write(runtime, "a.txt", "agent")
    write(runtime, "mine.txt", "person", "user")
    write(runtime, "b.txt", "agent")
    assert [kind for kind, _ in labels(runtime)] == ["turn", "turn"]
    rewind(runtime, 1)
    assert sorted(path.name for path in root.iterdir()) == ["mine.txt"]


def test_changes_between_steps_are_not_the_agents(runtime: Runtime, root: Path) -> None:
    write(runtime, "a.txt", "agent")
    (root / "mine.txt").write_text("typed in an editor")
    write(runtime, "b.txt", "agent")
    assert len(labels(runtime)) == 1
    rewind(runtime, 1)
    assert sorted(path.name for path in root.iterdir()) == ["mine.txt"]


def test_a_long_pause_begins_a_new_turn(root: Path) -> None:
    runtime = make(root, checkpoint_pause=0.0)
    try:
        write(runtime, "a.txt", "1")
        write(runtime, "a.txt", "2")
        assert len(labels(runtime)) == 2
    finally:
        runtime.close()


def by_session(action: Any, session: str) -> Any:
    action.actor = Actor(session=session)
    return action


@pytest.mark.thorough
def test_a_clients_job_is_one_turn_whatever_happens_in_its_pauses(root: Path) -> None:
    runtime = make(root, checkpoint_pause=0.0)
    try:
        checkpoints = runtime.executor.turns.checkpoints
        runtime.submit_action(by_session(CmdRunAction("echo 1 > a.txt"), "s1")).result(60)
        (root / "mine.txt").write_text("typed in an editor")
        runtime.submit_action(by_session(IPythonRunCellAction("1 + 1"), "s1")).result(60)
        runtime.submit_action(by_session(CmdRunAction("echo 2 > b.txt"), "s1")).result(60)
        assert len(checkpoints.entries()) == 1
        (turn,) = runtime.submit(runtime.executor.turns.entries()).result(60)
        assert (turn.id, turn.label) == (1, "echo 1 > a.txt")
        assert turn.extra["files"] == ["a.txt", "b.txt"]
        assert turn.extra["cells"] == 1
        runtime.submit_action(by_session(CmdRunAction("echo 3 > c.txt"), "s2")).result(60)
        entries = runtime.submit(runtime.executor.turns.entries()).result(60)
        assert [entry.id for entry in entries] == [1, 2]
        rewind(runtime, 2)
        assert checkpoints.last_turn().id == 1
        rewind(runtime, 1)
        assert [path.name for path in root.iterdir()] == ["mine.txt"]
    finally:
        runtime.close()


@pytest.mark.thorough
def test_the_shell_goes_back_too(runtime: Runtime, root: Path) -> None:
    def shell(command: str, source: str = "agent", timeout: float | None = None) -> str:
        action = CmdRunAction(command, blocking=True)
        action.timeout = timeout
        return runtime.submit_action(action, source).result(60).content

    shell("mkdir sub; export MINE=1", "user")
    shell("cd sub; export MINE=2 ITS=3; echo x > y")
    assert shell("pwd") == str(root / "sub")
    assert str(rewind(runtime, 1)) == f"delete      sub/y\nThe shell returns to {root}."
    assert shell('pwd; echo "$MINE|$ITS"') == f"{root}\n1|"
    shell("cd sub; sleep 1000", timeout=0.5)
    plan = rewind(runtime, 1)
    assert plan.notes == [
        "The shell's directory and variables stay as they are: A command is running in the shell: "
        "wait until it has ended."
    ]


def mark(runtime: Runtime) -> int:
    id: int = runtime.submit(runtime.executor.turns.mark("here")).result(60).id
    return id


def test_a_rewind_to_a_mark_within_a_turn(runtime: Runtime, root: Path) -> None:
    write(runtime, "a.txt", "1")
    id = mark(runtime)
    write(runtime, "a.txt", "2")
    write(runtime, "b.txt", "agent")
    runtime.submit_action(CmdRunAction("touch c.txt")).result(60)
    assert [kind for kind, _ in labels(runtime)] == ["turn", "mark", "turn"]
    assert str(rewind(runtime, id)) == "restore     a.txt\ndelete      b.txt\ndelete      c.txt"
    assert (root / "a.txt").read_text() == "1\n"
    rewind(runtime, 1)
    assert list(root.iterdir()) == []


def test_a_mark_of_another_process_ends_a_turn(runtime: Runtime, root: Path) -> None:
    write(runtime, "a.txt", "1")
    checkpoints = Checkpoints(root, runtime.executor.turns.checkpoints.directory)
    id = checkpoints.begin("here", who="user", kind="mark").id
    write(runtime, "a.txt", "2")
    assert str(rewind(runtime, id)) == "restore     a.txt"
    assert str(rewind(runtime, 1)) == "delete      a.txt"


def test_a_rewind_of_another_process_while_an_agent_works(runtime: Runtime, root: Path) -> None:
    (root / "a.txt").write_text("0")
    turn = runtime.submit(runtime.executor.turns.begin("fix it", "claude")).result(60)
    write(runtime, "a.txt", "1")
    persons = make(root)
    assert str(rewind(persons, turn)) == "restore     a.txt"
    write(runtime, "b.txt", "2")
    mark(persons)
    write(runtime, "b.txt", "3")
    end(runtime, turn)
    entries = runtime.executor.turns.checkpoints.entries
    wait_until(lambda: not entries()[-1].is_open, what="the end of the turn")
    parts = [(each.kind, each.extra.get("part_of")) for each in entries()]
    kinds = ["turn", "rewind", "turn", "mark", "turn"]
    assert parts == list(zip(kinds, (None, None, turn, None, turn), strict=True))
    assert str(rewind(persons, 4)) == "restore     b.txt"
    assert (root / "b.txt").read_text() == "2\n"
    assert str(rewind(persons, turn)) == "delete      b.txt"
    assert (root / "a.txt").read_text() == "0"
    persons.close()


def test_a_mark_while_a_command_runs(runtime: Runtime, root: Path) -> None:
    os.mkfifo(root / "wait")
    command = "echo 1 > a.txt; touch started; read < wait; echo 2 > a.txt; touch b.txt"
    running = runtime.submit_action(CmdRunAction(command, blocking=True))
    wait_until((root / "started").exists, what="the start of the command")
    id = mark(runtime)
    (root / "wait").write_text("go\n")
    running.result(60)
    write(runtime, "c.txt", "agent")
    assert [kind for kind, _ in labels(runtime)] == ["turn", "mark", "turn"]
    plan = rewind(runtime, id)
    assert [(each.kind, each.path) for each in plan.changes] == [
        ("restore", "a.txt"),
        ("delete", "b.txt"),
        ("delete", "c.txt"),
    ]
    assert (root / "a.txt").read_text() == "1\n"


def test_a_person_edits_while_a_command_of_an_agent_runs(runtime: Runtime, root: Path) -> None:
    os.mkfifo(root / "wait")
    command = "touch started; read < wait; touch its.txt"
    running = runtime.submit_action(CmdRunAction(command, blocking=True))
    wait_until((root / "started").exists, what="the start of the command")
    write(runtime, "mine.txt", "person", "user")
    (root / "wait").write_text("go\n")
    running.result(60)
    assert [kind for kind, _ in labels(runtime)] == ["turn"]
    plan = rewind(runtime, 1)
    assert [(each.kind, each.path) for each in plan.changes] == [
        ("delete", "its.txt"),
        ("delete", "started"),
    ]
    assert list(plan.kept) == ["mine.txt"]
    assert (root / "mine.txt").exists()


def test_a_mark_within_an_announced_turn(runtime: Runtime, root: Path) -> None:
    turn = runtime.submit(runtime.executor.turns.begin("fix it", "claude")).result(60)
    write(runtime, "a.txt", "1")
    id = mark(runtime)
    write(runtime, "a.txt", "2")
    with pytest.raises(CheckpointError, match="An agent is working"):
        rewind(runtime, id)
    end(runtime, turn)
    assert labels(runtime) == [("turn", "fix it"), ("mark", "here"), ("turn", "fix it")]
    rewind(runtime, id)
    assert (root / "a.txt").read_text() == "1\n"
    rewind(runtime, turn)
    assert list(root.iterdir()) == []


def test_an_announced_turn_is_one_turn(runtime: Runtime, root: Path) -> None:
    executor = runtime.executor
    id = runtime.submit(executor.turns.begin("fix it", "claude")).result(60)
    write(runtime, "a.txt", "agent")
    with pytest.raises(CheckpointError, match="An agent is working"):
        rewind(runtime, 1)
    end(runtime, id)
    rewind(runtime, 1)
    entry = executor.turns.checkpoints.entries()[0]
    assert (entry.label, entry.who, entry.is_open) == ("fix it", "claude", False)
    assert list(root.iterdir()) == []


def test_changes_by_others_while_an_agent_thinks_are_theirs(
    runtime: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", str(root / "book.ipynb"))
    for name in ("book.ipynb", "notes.txt", "both.txt"):
        (root / name).write_text("before")
    id = runtime.submit(runtime.executor.turns.begin("fix it", "claude")).result(60)
    for name in ("notes.txt", "mine.txt", "both.txt"):
        (root / name).write_text("typed in an editor")
    runtime.submit_action(CmdRunAction("echo x > its.txt; echo saved > book.ipynb")).result(60)
    write(runtime, "both.txt", "agent")
    end(runtime, id)
    plan = rewind(runtime, 1)
    assert str(plan) == (
        "restore     both.txt\ndelete      its.txt\n"
        "keep        book.ipynb  (changed by others during the turn)\n"
        "keep        mine.txt  (changed by others during the turn)\n"
        "keep        notes.txt  (changed by others during the turn)"
    )
    assert (root / "mine.txt").read_text() == "typed in an editor"
    rewind(runtime, 1, everything=True)
    assert not (root / "mine.txt").exists()
    assert (root / "book.ipynb").read_text() == "before"


def edit(runtime: Runtime, command: str, path: str = "", **fields: Any) -> str:
    action = FileEditAction(path, command, **fields)
    return runtime.submit_action(action, "user").result(60).content


@pytest.mark.parametrize("kernels", [1, 2])
def test_a_persons_edits_while_an_agent_works_stay(
    runtime: Runtime, root: Path, kernels: int
) -> None:
    persons = runtime if kernels == 1 else make(root)
    (root / "its.txt").write_text("before")
    (root / "patched.txt").write_text("one\n")
    id = runtime.submit(runtime.executor.turns.begin("fix it", "claude")).result(60)
    write(runtime, "its.txt", "agent")
    write(runtime, "made.txt", "agent")
    write(persons, "written.txt", "person", "user")
    edit(persons, "create", str(root / "created.txt"), file_text="person\n")
    patch = "--- a/patched.txt\n+++ b/patched.txt\n@@ -1 +1 @@\n-one\n+person\n"
    edit(persons, "apply_patch", str(root), content=patch)
    edit(persons, "create", str(root / "dry.txt"), file_text="", dry_run=True)
    assert "ERROR" in edit(persons, "create", str(root / "its.txt"), file_text="person")
    write(runtime, "written.txt", "person and agent")
    end(runtime, id)
    plan = rewind(runtime, 1)
    others = "(changed by others during the turn)"
    assert str(plan) == (
        "restore     its.txt\ndelete      made.txt\nrestore     written.txt\n"
        f"keep        created.txt  {others}\n"
        f"keep        patched.txt  {others}"
    )
    assert (root / "written.txt").read_text() == "person\n"
    persons.close()


def test_an_agents_edit_during_anothers_command_is_its_own(runtime: Runtime, root: Path) -> None:
    other = make(root)
    write(runtime, "first.txt", "1")
    write(other, "both.txt", "2")
    write(other, "second.txt", "2")
    write(runtime, "both.txt", "1")
    write(runtime, "later.txt", "1")
    entries = runtime.executor.turns.checkpoints.entries()
    files = [each.extra["files"] for each in entries]
    assert files == [["both.txt", "first.txt", "later.txt"], ["both.txt", "second.txt"]]
    rewind(runtime, 2)
    assert sorted(path.name for path in root.iterdir()) == ["both.txt", "first.txt", "later.txt"]
    other.close()


def test_an_agents_change_right_after_a_persons_edit_is_undone(
    runtime: Runtime, root: Path
) -> None:
    write(runtime, "both.txt", "person", "user")
    runtime.submit_action(CmdRunAction("echo agent > both.txt")).result(60)
    rewind(runtime, 1)
    assert (root / "both.txt").read_text() == "person\n"


def test_a_notebook_that_an_agent_edits_comes_back(
    runtime: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", str(root / "sub" / "book.ipynb"))
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "book.ipynb").write_text("before")
    runtime.submit_action(CmdRunAction("cd sub")).result(60)
    write(runtime, "book.ipynb", "agent")
    rewind(runtime, 1)
    assert (root / "sub" / "book.ipynb").read_text() == "before"


def test_changes_by_a_command_that_outlives_its_action(
    runtime: Runtime, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "gate")
    id = runtime.submit(runtime.executor.turns.begin("fix it", "claude")).result(60)
    action = CmdRunAction("read line < gate; echo $line > its.txt", blocking=True)
    action.timeout = 0.5
    runtime.submit_action(action).result(60)
    (root / "gate").write_text("late\n")
    wait_until(lambda: (root / "its.txt").exists() and (root / "its.txt").read_text())
    end(runtime, id)
    assert str(rewind(runtime, 1)) == "delete      its.txt"


def test_the_last_turn_that_is_not_undone(runtime: Runtime, root: Path) -> None:
    checkpoints = runtime.executor.turns.checkpoints
    with pytest.raises(CheckpointError, match=r"No turn of an agent in .* is left to undo"):
        checkpoints.last_turn()
    for name in "abc":
        id = runtime.submit(runtime.executor.turns.begin(name, "agent")).result(60)
        write(runtime, name, name)
        end(runtime, id)
    for names in (["a", "b"], ["a"], []):
        rewind(runtime, checkpoints.last_turn().id)
        assert sorted(path.name for path in root.iterdir()) == names
    with pytest.raises(CheckpointError, match="is left to undo"):
        checkpoints.last_turn()
    last_rewind = checkpoints.entries()[-1]
    rewind(runtime, last_rewind.id)
    assert sorted(path.name for path in root.iterdir()) == ["a"]
    assert checkpoints.last_turn().label == "a"


def test_without_checkpoints_agents_work_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shutil.which", lambda program, path: None)
    runtime = make(root)
    try:
        write(runtime, "a.txt", "1")
        write(runtime, "a.txt", "2")
        assert (root / "a.txt").read_text() == "2\n"
        assert caplog.text.count("Turns of agents get no checkpoints now") == 1
        assert "there is none on the PATH" in runtime.executor.turns.problem
    finally:
        runtime.close()


def test_after_a_while_they_are_tried_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "RETRY_SECONDS", 0.0)
    runtime = make(root)
    try:
        with monkeypatch.context() as without_git:
            without_git.setattr("shutil.which", lambda program, path: None)
            write(runtime, "a.txt", "1")
            assert runtime.executor.turns.problem
        write(runtime, "a.txt", "2")
        assert runtime.executor.turns.problem == ""
        assert len(Checkpoints(root).entries()) == 1
    finally:
        runtime.close()


def test_they_can_be_switched_off(root: Path) -> None:
    runtime = make(root, checkpoints="off")
    try:
        write(runtime, "a.txt", "1")
        assert Checkpoints(root).entries() == []
    finally:
        runtime.close()
    with pytest.raises(ConfigError, match="must be one of auto, off, not 'on'"):
        make(root, checkpoints="on")


def test_changes_by_a_person_while_an_agents_command_waits_are_the_persons(
    runtime: Runtime, root: Path
) -> None:
    """Both use one shell; the agent's command waits for the person's."""
    os.mkfifo(root / "wait")
    write(runtime, "first.txt", "agent")
    persons = CmdRunAction("touch started; read < wait; touch mine.txt", blocking=True)
    running = runtime.submit_action(persons, "user")
    wait_until((root / "started").exists, what="the start of the person's command")
    agents = runtime.submit_action(CmdRunAction("touch its.txt", blocking=True))
    waiting = runtime.executor.running
    wait_until(lambda: any(each.is_queued for each in list(waiting.values())))
    (root / "wait").write_text("go\n")
    running.result(60)
    agents.result(60)
    assert labels(runtime)[-1] == ("turn", "touch its.txt")
    rewind(runtime, 1)
    assert sorted(path.name for path in root.iterdir()) == ["mine.txt", "started", "wait"]


def test_changes_by_a_static_command_are_undone(runtime: Runtime, root: Path) -> None:
    runtime.submit_action(CmdRunAction("true", blocking=True)).result(60)
    runtime.submit_action(CmdRunAction("touch its.txt", is_static=True)).result(60)
    assert str(rewind(runtime, 1)) == "delete      its.txt"


def test_the_shell_is_no_job_of_its_first_command(runtime: Runtime, root: Path) -> None:
    runtime.submit_action(CmdRunAction("touch its.txt", blocking=True)).result(60)
    assert not runtime.executor.turns.checkpoints.is_at_work
    runtime.submit_action(CmdRunAction("sleep 600 &", blocking=True)).result(60)
    assert runtime.executor.turns.checkpoints.is_at_work
