"""The endpoints, on real kernels behind a real server."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest

from oh_jupyter.testing import wait_until


async def test_alive_and_server_info_need_no_kernel(ask, jp_serverapp) -> None:
    assert await ask("alive") == (200, {"status": "ok"})
    status, info = await ask("server_info")
    assert status == 200
    assert set(info) >= {"uptime", "idle_time", "resources"}
    assert info["runtime"] is None
    assert set(info["resources"]) == {"cpu_percent", "memory", "disk", "io"}
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


async def test_the_default_kernel_is_started_on_demand(act, ask, jp_serverapp) -> None:
    status, observation = await act("run", command="echo hello")
    assert (status, observation["observation"], observation["content"]) == (200, "run", "hello")
    assert len(list(jp_serverapp.kernel_manager.list_kernel_ids())) == 1
    status, observation = await act("run", command="echo again")
    assert observation["content"] == "again"
    assert len(list(jp_serverapp.kernel_manager.list_kernel_ids())) == 1
    status, info = await ask("server_info")
    assert info["default_kernel"] in jp_serverapp.kernel_manager
    assert info["runtime"]["memory"]["kernel"] > 0
    assert info["idle_time"] < info["uptime"]


@pytest.mark.thorough
@pytest.mark.shared_server
async def test_an_open_kernel_gets_the_extension_when_it_is_asked(act, plain_kernel) -> None:
    status, observation = await act("run_ipython", plain_kernel, code="here = 6 * 7\nhere")
    assert status == 200
    assert observation["content"].startswith("42\n")


async def test_asking_how_an_open_kernel_does_leaves_it_as_it_is(act, ask, plain_kernel) -> None:
    below = ("kernels", plain_kernel)
    assert await ask(*below, "alive") == (200, {"status": "ok"})
    status, info = await ask(*below, "server_info")
    assert (status, info["runtime"], info["default_kernel"]) == (200, None, None)
    await act("run", plain_kernel, command="cd /")
    status, info = await ask(*below, "server_info")
    assert (status, info["runtime"]["cwd"]) == (200, "/")
    assert (await ask("server_info"))[1]["runtime"] is None
    for path in ("alive", "server_info"):
        status, answer = await ask("kernels", "no-such-kernel", path)
        assert (status, answer["error"]) == (404, "KernelNotFoundError")


@pytest.mark.thorough
async def test_it_is_loaded_into_a_busy_kernel_too(act, plain_kernel, jp_serverapp) -> None:
    manager = jp_serverapp.kernel_manager.get_kernel(plain_kernel)
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        client.execute("import time; time.sleep(600)")
        while (await client.get_iopub_msg(timeout=30))["msg_type"] != "execute_input":
            pass
        status, observation = await act("run", plain_kernel, command="echo meanwhile")
        assert (status, observation["content"]) == (200, "meanwhile")
    finally:
        client.stop_channels()
        await manager.interrupt_kernel()


@pytest.mark.shared_server
async def test_twenty_requests_at_once(act) -> None:
    await act("run", command="true")
    answers = await asyncio.gather(
        *(act("run_ipython", code=f"print({n})", include_extra=False) for n in range(20))
    )
    assert [answer["content"] for _, answer in answers] == [str(n) for n in range(20)]


async def test_files_are_listed(ask, act, jp_root_dir) -> None:
    (jp_root_dir / "inner").mkdir()
    (jp_root_dir / "inner" / "x.txt").touch()
    status, names = await ask("list_files", body={"path": str(jp_root_dir / "inner")})
    assert (status, names) == (200, ["x.txt"])
    status, names = await ask("list_files", body={})
    assert status == 200
    assert "inner/" in names
    assert await ask("list_files", body={"path": "missing"}) == (200, [])


@pytest.mark.shared_server
async def test_looking_at_events_loads_nothing_into_a_kernel(
    act, ask, jp_fetch, plain_kernel
) -> None:
    status, answer = await ask("kernels", plain_kernel, "events")
    assert status == 424
    assert "%load_ext oh_jupyter" in answer["detail"]
    assert (await ask("kernels", plain_kernel, "events", "0"))[0] == 424
    for what in ("events", "confirmations"):
        where = ("oh_jupyter", "kernels", plain_kernel, what)
        answer = await jp_fetch(*where, params={"if_loaded": "true"})
        assert (answer.code, answer.body) == (204, b"")
    await act("run", plain_kernel, command="true")
    looked_for = {"if_loaded": "true"}
    assert await ask("kernels", plain_kernel, "confirmations", params=looked_for) == (200, [])


@pytest.mark.shared_server
async def test_events_are_listed_and_shown_whole(act, ask, plain_kernel) -> None:
    await act("run", plain_kernel, command="seq 100000")
    status, listing = await ask("kernels", plain_kernel, "events", params={"start_id": "0"})
    assert status == 200
    assert [event["id"] for event in listing["events"]] == [0, 1]
    assert listing["events"][1]["clipped"] is True
    status, event = await ask("kernels", plain_kernel, "events", "1")
    assert status == 200
    assert len(event["content"]) > len(listing["events"][1]["content"])


@pytest.mark.shared_server
@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"{", 422, "body"),
        ([], 422, "action"),
        ({}, 422, "action"),
        ({"action": {"action": "fly"}}, 400, "action"),
        ({"action": {"action": "message", "args": {"content": "x"}}}, 400, "action"),
        ({"action": {"action": "run", "args": {}}}, 422, "args.command"),
        ({"action": {"action": "run", "args": {"command": 1}}}, 422, "args.command"),
        ({"action": {"observation": "run", "content": ""}}, 400, "action"),
    ],
)
async def test_a_bad_action_is_refused_with_the_field(ask, body, status: int, field: str) -> None:
    answered, answer = await ask("execute_action", body=body)
    assert (answered, answer["field"]) == (status, field)
    assert answer["detail"]


async def test_an_empty_body_is_refused_before_any_kernel_starts(ask, jp_serverapp) -> None:
    status, answer = await ask("execute_action", body=b"")
    assert (status, answer["field"]) == (422, "action")
    assert not list(jp_serverapp.kernel_manager.list_kernel_ids())


@pytest.mark.shared_server
async def test_unknown_kernels_events_and_addresses_are_404(ask, act, plain_kernel) -> None:
    status, answer = await act("run", "no-such-kernel", command="ls")
    assert status == 404
    assert "no-such-kernel" in answer["detail"]
    await act("run", plain_kernel, command="true")
    assert (await ask("kernels", plain_kernel, "events", "999"))[0] == 404
    assert (await ask("nowhere"))[0] == 404
    assert (await ask("execute_action"))[0] == 405


async def test_only_users_of_the_server_are_allowed(ask, monkeypatch) -> None:
    wrong = {"headers": {"Authorization": "token wrong"}}
    for path in ("alive", "server_info", "nowhere", "kernels/x/events"):
        status, _ = await ask(*path.split("/"), **wrong)
        assert status == 403, path
    body = {"action": {"action": "run", "args": {"command": "ls"}}}
    assert (await ask("execute_action", body=body, **wrong))[0] == 403
    monkeypatch.setenv("SESSION_API_KEY", "secret")
    both = {"Authorization": "token wrong", "X-Session-API-Key": "secret"}
    assert (await ask("alive", headers=both))[0] == 200
    assert (await ask("execute_action", body=body, headers=both))[0] == 200
    both["X-Session-API-Key"] = "guess"
    assert await ask("alive", headers=both) == (
        403,
        {"detail": "Invalid API Key", "message": "Invalid API Key"},
    )
    monkeypatch.delenv("SESSION_API_KEY")
    both["X-Session-API-Key"] = ""
    assert (await ask("alive", headers=both))[0] == 403


async def test_users_without_execute_permission_are_refused(
    act, plain_kernel, jp_serverapp, monkeypatch
) -> None:
    asked = []

    def is_authorized(handler, user, action, resource) -> bool:
        asked.append((action, resource))
        return resource != "kernels"

    monkeypatch.setattr(jp_serverapp.authorizer, "is_authorized", is_authorized)
    assert (await act("run", plain_kernel, command="ls"))[0] == 403
    assert asked == [("execute", "oh_jupyter:actions"), ("execute", "kernels")]
    assert (await act("run", command="echo own"))[0] == 200


@pytest.mark.thorough
@pytest.mark.parametrize("how", ["killed", "exits", "restarted", "shut down"])
async def test_pending_requests_end_when_the_kernel_does(
    act, plain_kernel, jp_serverapp, tmp_path, caplog, how: str
) -> None:
    _, before = await act("run_ipython", plain_kernel, code="import os; os.getpid()")
    pid = int(before["content"].partition("\n")[0])
    started = tmp_path / "started"
    code = (
        "import ctypes; ctypes.string_at(0)" if how == "exits" else "import time; time.sleep(600)"
    )
    if how == "shut down":  # Jupyter interrupts the cell first, whose result may be in time
        code = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {code}"
    code = f"open({str(started)!r}, 'w').close(); {code}"
    waiting = asyncio.ensure_future(act("run_ipython", plain_kernel, code=code))
    await asyncio.to_thread(wait_until, started.exists)
    if how == "killed":
        os.kill(pid, signal.SIGKILL)
    elif how == "restarted":
        await jp_serverapp.kernel_manager.restart_kernel(plain_kernel)
    elif how == "shut down":
        await jp_serverapp.kernel_manager.shutdown_kernel(plain_kernel)
    status, answer = await asyncio.wait_for(waiting, 60)
    assert status == 503
    assert "state of its runtime is lost" in answer["detail"]
    ours = [each for each in caplog.records if each.name == "OhJupyter"]
    assert "the kernel ended before it replied" in ours[-1].getMessage()
    assert [each for each in ours if each.levelname == "ERROR"] == []
    status, after = await act("run_ipython", plain_kernel, code="'alive'")
    if how == "shut down":
        assert status == 404
    else:
        assert after["content"].startswith("'alive'")


@pytest.mark.thorough
async def test_a_new_generation_reports_the_lost_state(
    jp_fetch, jp_serverapp, plain_kernel
) -> None:
    body = json.dumps({"action": {"action": "run", "args": {"command": "true"}}})

    async def generation() -> str:
        response = await jp_fetch(
            "oh_jupyter", "kernels", plain_kernel, "execute_action", method="POST", body=body
        )
        return response.headers["X-OH-Jupyter-Generation"]

    first = await generation()
    assert await generation() == first
    await jp_serverapp.kernel_manager.restart_kernel(plain_kernel)
    assert await generation() != first


@pytest.mark.thorough
async def test_a_kernel_is_not_idle_because_it_is_asked(act, plain_kernel, jp_serverapp) -> None:
    await act("run", plain_kernel, command="true")
    manager = jp_serverapp.kernel_manager.get_kernel(plain_kernel)
    before = manager.last_activity
    await act("run", plain_kernel, command="true")
    assert manager.last_activity > before
    assert "oh_jupyter_request" in jp_serverapp.kernel_manager.untracked_message_types
    page = jp_serverapp.web_app.settings["page_config_data"]
    assert "oh_jupyter_request" in page["untracked_message_types"]
