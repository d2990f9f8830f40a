"""A person works beside an agent on a real server: a rewind undoes the agent's work and no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from beside import Session, open_session

from oh_jupyter.testing import LiveServer, run_server, wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    folder = tmp_path_factory.mktemp("server")
    with run_server(folder, environment={"OH_JUPYTER_CHECKPOINTS": "auto"}) as running:
        yield running


@pytest.fixture
def session(server: LiveServer, request: pytest.FixtureRequest) -> Iterator[Session]:
    with open_session(server, f"work{abs(hash(request.node.name)):x}") as opened:
        yield opened


def test_right_after_a_step_everything_is_the_persons(session: Session) -> None:
    (session.root / "notes.txt").write_text("old\n")
    (session.root / "old.txt").write_text("old\n")
    session.run("echo agent > agents.txt")
    session.type(
        "open('mine.txt', 'w').write('mine'); open('notes.txt', 'a').write('mine\\n');"
        "os.rename('old.txt', 'new.txt'); os.makedirs('folder/deep')"
    )
    plan = session.rewind()
    assert plan["changes"] == [{"path": "agents.txt", "kind": "delete"}]
    assert session.files() == {"mine.txt": "mine", "new.txt": "old\n", "notes.txt": "old\nmine\n"}
    assert (session.root / "folder" / "deep").is_dir()


@pytest.mark.parametrize("during", [False, True])
def test_deletions_and_renames_by_a_person_in_jupyter_stay(session: Session, during: bool) -> None:
    for name in ("notes.md", "draft.md"):
        (session.root / name).write_text("old\n")
    command = "echo agent > agents.txt; until [ -e go ]; do sleep 0.05; done"
    running = threading.Thread(target=session.run, args=[command])
    if during:
        running.start()
        _until(session.root / "agents.txt")
    else:
        session.run("echo agent > agents.txt")
    session.contents("DELETE", "notes.md")
    session.contents("PATCH", "draft.md", path=f"{session.name}/final.md")
    session.save("saved.md", "mine")
    if during:
        (session.root / "go").touch()
        running.join()
        (session.root / "go").unlink()
    session.rewind()
    assert session.files() == {"final.md": "old\n", "saved.md": "mine"}


@pytest.mark.parametrize("overwrite", ["echo agent > notes.md", "rm notes.md"])
def test_files_overwritten_by_the_agent_return_to_the_persons_version(
    session: Session, overwrite: str
) -> None:
    (session.root / "notes.md").write_text("old\n")
    session.act("write", path="notes.md", content="agent 1")
    session.save("notes.md", "the person's\n")
    session.run(overwrite)
    session.rewind()
    assert session.files() == {"notes.md": "the person's\n"}
    session.rewind(2)
    assert session.files() == ({"notes.md": "agent\n"} if "echo" in overwrite else {})


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_file_removed_by_a_person_after_the_agent_stays_removed(
    session: Session, is_seen: bool
) -> None:
    (session.root / "notes.md").write_text("old\n")
    session.run("rm notes.md")
    session.type("open('notes.md', 'w').write('the person\\'s')")
    if is_seen:  # between the two, or only after both
        session.run("true")
    session.type("os.rename('notes.md', 'final.md')")
    plan = session.rewind()
    assert session.files() == {"final.md": "the person's"}
    assert "changed by others" in plan["kept"]["notes.md"]


def test_programs_that_end_at_once_during_a_step(session: Session) -> None:
    """Both parties run commands that have ended before anybody could look at them."""
    names = [f"mine{number}" for number in range(30)]
    for name in names:
        (session.root / f"{name}.old").write_text("old\n")
    command = (
        "until [ -e go ]; do cp /dev/null agents.txt; rm agents.txt; done; sh -c 'echo > agents'"
    )
    running = threading.Thread(target=session.run, args=[command])
    running.start()
    for name in names:
        session.type(f"subprocess.run('cp {name}.old {name}; rm {name}.old', shell=True)")
    session.type("open('go', 'w').write('mine')")
    running.join()
    session.rewind()
    if os.geteuid() == 0:  # the system names the processes
        assert session.files() == {"go": "mine", **dict.fromkeys(names, "old\n")}


def test_a_persons_new_file_that_the_agent_edits_loses_only_the_agents_line(
    session: Session,
) -> None:
    session.run("true")
    lines = [f"line {number}\n" for number in range(10)]
    session.save("mine.md", "".join(lines))
    session.act("edit", path=str(session.root / "mine.md"), command="str_replace", old_str="line 2",
                new_str="agent 2")  # fmt: skip
    session.type("open('mine.md', 'a').write('the end\\n')")
    session.rewind()
    assert session.files() == {"mine.md": "".join([*lines, "the end\n"])}


def test_a_folder_that_the_agent_renames_gets_its_name_back(session: Session) -> None:
    (session.root / "folder" / "deep").mkdir(parents=True)
    (session.root / "folder" / "deep" / "a").write_text("old")
    session.run("mv folder new")
    plan = session.rewind()
    assert session.files() == {"folder/deep/a": "old"}
    assert not (session.root / "new").exists()
    assert not plan["kept"]


def test_writes_of_another_program_during_a_step_are_not_the_agents(session: Session) -> None:
    command = "echo agent > agents.txt; until [ -e go ]; do sleep 0.05; done; echo late > its.txt"
    running = threading.Thread(target=session.run, args=[command])
    running.start()
    _until(session.root / "agents.txt")
    session.type("open('mine.txt', 'w').write('mine'); os.mkdir('folder')")
    session.type("open('folder/mine.txt', 'w').write('mine')")
    session.type("open('agents.txt', 'w').write('mine'); open('go', 'w').close()")
    running.join()
    session.rewind()
    expected = {"agents.txt": "mine", "folder/mine.txt": "mine", "mine.txt": "mine", "go": ""}
    if os.geteuid() == 0:  # the system names the processes
        assert session.files() == expected


def test_late_work_of_a_job_is_undone_and_concurrent_work_of_others_is_not(
    session: Session,
) -> None:
    job = "until [ -e go ]; do sleep 0.05; done; echo late > late.txt; sleep 600"
    session.run(f"(trap '' HUP; {job}) > log.txt 2>&1 & echo started > started.txt")
    session.type("open('mine.txt', 'w').write('mine'); open('go', 'w').close()")
    _until(session.root / "late.txt")
    plan = session.rewind(preview=True)
    listed = {each["path"] for each in plan["changes"]} | plan["kept"].keys()
    assert {"late.txt", "log.txt", "started.txt"} <= listed
    session.rewind()
    assert (session.root / "mine.txt").read_text() == "mine"
    if os.geteuid() == 0:
        assert not (session.root / "late.txt").exists()


def _until(path: Path) -> None:
    """Wait until a file exists and is not empty, as its writer has closed it."""
    wait_until(lambda: path.exists() and path.stat().st_size > 0)
