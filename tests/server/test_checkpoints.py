"""The checkpoints of a kernel's workspace over REST."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from mcp_client import MAJOR

from oh_jupyter.checkpoints import Checkpoints
from oh_jupyter.testing import wait_until
from oh_jupyter.writes import moves, persons_writes

EMPTY_NOTEBOOK = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.mark.thorough
async def test_a_turn_is_undone(ask: Any, act: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    status, result = await ask("checkpoints")
    assert (status, result) == (200, {"checkpoints": [], "problem": ""})
    status, mark = await ask("checkpoints", body={"label": "before"})
    assert (status, mark["kind"], mark["label"]) == (200, "mark", "before")
    _, done = await act("run", command="echo x > made.txt; pwd")
    folder = done["content"].strip()
    status, result = await ask("checkpoints")
    assert [entry["kind"] for entry in result["checkpoints"]] == ["mark", "turn"]
    status, plan = await ask("rewind", body={"preview": True})
    assert (status, plan["changes"]) == (200, [{"path": "made.txt", "kind": "delete"}])
    assert os.path.exists(os.path.join(folder, "made.txt"))
    status, done = await ask("rewind", body={"source": "user"})
    assert (status, done) == (200, plan)
    assert not os.path.exists(os.path.join(folder, "made.txt"))
    status, answer = await ask("rewind", body={})
    assert (status, answer["error"]) == (409, "CheckpointError")
    assert "is left to undo" in answer["detail"]


async def test_wrong_requests(ask: Any) -> None:
    for body, word in (
        ({"id": "x"}, "'id' must be an integer or null, not a string"),
        ({"id": True}, "'id' must be an integer or null, not true or false"),
        ({"everything": 1}, "'everything' must be true or false"),
        ({"source": "me"}, "'source' must be"),
        ([], "must be a JSON object"),
    ):
        status, answer = await ask("rewind", body=body)
        assert status == 422, answer
        assert word in answer["detail"]
    status, answer = await ask("rewind", body={"id": 99})
    assert (status, answer["detail"][:16]) == (409, "No checkpoint 99")
    status, answer = await ask("checkpoints", body={"label": 1})
    assert (status, answer["detail"]) == (422, "'label' must be a string, not an integer")


@pytest.mark.thorough
async def test_later_changes_by_a_person_are_kept(
    act: Any, ask: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    _, done = await act("run", command="pwd")
    root = Path(done["content"].strip())
    for path in (".env", "conf/c", "out/x"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("old\n")
    await act("run", command="rm -r .env out conf; printf '.env\\nconf/\\n' > .gitignore")
    id = (await ask("checkpoints"))[1]["checkpoints"][-1]["id"]
    (root / ".env").write_text("the person's\n")
    (root / "out").write_bytes(b"x" * (11 << 20))
    (root / "conf").mkdir()
    (root / "conf" / "thesis.md").write_text("years\n")
    status, plan = await ask("rewind", body={"id": id, "preview": True})
    assert status == 200
    assert set(plan["kept"]) == {".env", "out", "out/x"}
    assert await ask("rewind", body={"id": id, "source": "user"}) == (200, plan)
    assert (root / ".env").read_text() == "the person's\n"
    assert (root / "out").stat().st_size == 11 << 20
    assert {path.name for path in (root / "conf").iterdir()} == {"c", "thesis.md"}


@pytest.mark.thorough
async def test_a_turn_ends_with_its_killed_kernel(
    act: Any, ask: Any, jp_root_dir: Path, monkeypatch: Any, jp_serverapp: Any
) -> None:
    root = jp_root_dir / "project"
    root.mkdir()
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    plain_kernel = str(await jp_serverapp.kernel_manager.start_kernel(path="project"))
    _, done = await act("run_ipython", plain_kernel, code="import os; print(os.getpid())")
    pid = int(done["content"].partition("\n")[0])
    (root / "edited").write_text("old\n")
    command = "echo agent > made; sleep 1000"
    waiting = asyncio.ensure_future(act("run", plain_kernel, command=command))
    made = root / "made"
    await asyncio.to_thread(wait_until, lambda: made.exists() and _is_noted(root, made))
    os.kill(pid, signal.SIGKILL)
    await waiting
    (root / "mine").write_text("the person's\n")
    (root / "edited").write_text("the person's\n")
    status, done = await act("run_ipython", plain_kernel, code="'alive'")
    assert status == 200
    checkpoints = ["kernels", plain_kernel, "checkpoints"]
    _, result = await ask(*checkpoints)
    turns = [entry for entry in result["checkpoints"] if entry["kind"] == "turn"]
    status, plan = await ask(
        "kernels", plain_kernel, "rewind", body={"id": turns[0]["id"], "source": "user"}
    )
    assert status == 200
    assert {"path": "made", "kind": "delete"} in plan["changes"]
    assert not made.exists()
    assert (root / "mine").read_text() == (root / "edited").read_text() == "the person's\n"


def _is_noted(root: Path, path: Path) -> bool:
    """Whether the kernel was alive after a change of the file."""
    owners = Checkpoints(root).directory / "owners"
    return any(each.stat().st_mtime > path.stat().st_ctime for each in owners.glob("*.lock"))


@pytest.mark.thorough
async def test_a_notebook_that_a_person_moved_during_a_turn_stays(
    act: Any, ask: Any, jp_fetch: Any, jp_root_dir: Path, monkeypatch: Any, jp_serverapp: Any
) -> None:
    root = jp_root_dir / "project"
    root.mkdir()
    old, new = root / "old.ipynb", root / "new.ipynb"
    old.write_text(EMPTY_NOTEBOOK)
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    environment = {**os.environ, "JPY_SESSION_NAME": str(old)}
    kernel = str(await jp_serverapp.kernel_manager.start_kernel(path="project", env=environment))
    await act("run", kernel, command="echo agent > made")
    body = json.dumps({"path": "project/new.ipynb"})
    await jp_fetch("api", "contents", "project", "old.ipynb", method="PATCH", body=body)
    await asyncio.to_thread(wait_until, lambda: moves(0), what="the record of the move")
    # The tab keeps saving while the agent works.
    await act("run", kernel, command=f"printf ' ' >> {new}")

    path = ["kernels", kernel, "rewind"]
    status, plan = await ask(*path, body={"id": 1, "preview": True})
    assert (status, plan["changes"]) == (200, [{"path": "made", "kind": "delete"}])
    assert await ask(*path, body={"id": 1, "source": "user"}) == (200, plan)
    assert new.read_text() == f"{EMPTY_NOTEBOOK} "
    assert not old.exists()


@pytest.mark.thorough
async def test_a_file_that_a_person_saved_while_a_command_ran_stays(
    act: Any, ask: Any, jp_fetch: Any, jp_root_dir: Path, monkeypatch: Any
) -> None:
    root = jp_root_dir / "project"
    root.mkdir()
    thesis = root / "thesis.md"
    thesis.write_text("old")
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    command = asyncio.create_task(
        act("run", command=f"cd {root}; touch made; until [ -e go ]; do sleep 0.05; done")
    )
    await asyncio.to_thread(wait_until, (root / "made").exists, what="the command")
    body = json.dumps({"type": "file", "format": "text", "content": "the person's"})
    await jp_fetch("api", "contents", "project", "thesis.md", method="PUT", body=body)
    await asyncio.to_thread(wait_until, lambda: persons_writes(0), what="the record of the save")
    (root / "go").touch()
    await command
    status, plan = await ask("rewind", body={"source": "user"})
    assert status == 200
    assert {"path": "project/made", "kind": "delete"} in plan["changes"]
    assert plan["kept"]["project/thesis.md"] == "changed by others during the turn"
    assert thesis.read_text() == "the person's"


@pytest.mark.thorough
@pytest.mark.skipif(MAJOR == 1, reason="major 1 of the SDK knows sessions only")
async def test_calls_of_a_client_without_a_session_are_one_turn(
    mcp_connect: Any, act: Any, ask: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    _, done = await act("run", command="pwd")
    root = Path(done["content"].strip())

    async def run(command: str, name: str) -> None:
        async with mcp_connect(transport="sessionless", name=name) as client:
            await client.call_tool("run", {"command": command})

    await run("echo 1 > a.txt", "first")
    (root / "mine.txt").write_text("typed in an editor")
    await run("echo 2 > b.txt", "first")
    await run("echo 3 > c.txt", "second")
    listed = (await ask("checkpoints"))[1]["checkpoints"]
    turns = [(each["id"], each["label"], each["files"]) for each in listed[1:]]
    assert turns == [(2, "echo 1 > a.txt", ["a.txt", "b.txt"]), (3, "echo 3 > c.txt", ["c.txt"])]


@pytest.mark.thorough
async def test_requests_of_one_session_are_one_turn(act: Any, ask: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OH_JUPYTER_CHECKPOINTS", "auto")
    _, done = await act("run", command="pwd")
    root = Path(done["content"].strip())

    async def run(command: str, session: str) -> None:
        action = {"action": {"action": "run", "args": {"command": command}}}
        headers = {"X-Session": session}
        assert (await ask("execute_action", body=action, headers=headers))[0] == 200

    await run("echo 1 > a.txt", "first")
    (root / "mine.txt").write_text("typed in an editor")
    await run("echo 2 > b.txt", "first")
    await run("echo 3 > c.txt", "second")
    listed = (await ask("checkpoints"))[1]["checkpoints"]
    turns = [(each["id"], each["label"], each["files"]) for each in listed[1:]]
    assert turns == [(2, "echo 1 > a.txt", ["a.txt", "b.txt"]), (3, "echo 3 > c.txt", ["c.txt"])]
    _, log = await ask("events")
    actors = [
        each["oh_jupyter"]["actor"]
        for each in log["events"]
        if "action" in each and "oh_jupyter" in each and "actor" in each["oh_jupyter"]
    ]
    sessions = [actor.get("session") for actor in actors]
    assert len(set(filter(None, sessions))) == 2
    assert "first" not in sessions
    assert "REST (first)" in [actor.get("client") for actor in actors]
