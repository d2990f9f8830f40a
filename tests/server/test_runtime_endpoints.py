"""The store, the skills, the last page and confirmations over REST."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from oh_jupyter.server.state import state_of


@pytest.fixture
def store(jp_fetch: Any) -> Any:
    async def store(method: str, path: str, body: bytes | None = None, **options: Any) -> Any:
        try:
            answer = await jp_fetch(
                "oh_jupyter", "store", *path.split("/"), method=method, body=body, **options
            )
        except HTTPClientError as error:
            return error.code, json.loads(error.response.body)
        return answer.code, answer.body

    return store


@pytest.mark.shared_server
async def test_files_of_the_store(store: Any, jp_fetch: Any) -> None:
    data = os.urandom(2_500_000)
    assert (await store("PUT", "a b/é.bin", data)) == (204, b"")
    assert (await store("PUT", "a b/empty", b""))[0] == 204
    assert (await store("GET", "a b/é.bin")) == (200, data)
    assert (await store("GET", "a b/empty")) == (200, b"")
    empty = await jp_fetch("oh_jupyter", "store", "a b", "empty")
    assert empty.headers["Content-Type"] == "application/octet-stream"
    status, listing = await store("GET", "a b", params={"list": "true"})
    assert (status, json.loads(listing)["entries"]) == (200, ["a b/empty", "a b/é.bin"])
    assert (await store("DELETE", "a b/empty"))[0] == 204
    status, answer = await store("GET", "a b/empty")
    assert (status, answer["detail"]) == (404, "The store has no file 'a b/empty'")


@pytest.mark.shared_server
async def test_the_store_lists_and_renames_files(store: Any) -> None:
    async def details(path: str, name: str = "details") -> tuple[int, Any]:
        status, answer = await store("GET", path, params={name: "true"})
        return status, json.loads(answer) if status == 200 else answer

    await store("PUT", "ships/a.txt", b"abc")
    await store("PUT", "ships/deep/b.txt", b"")
    status, listing = await details("ships")
    files = {each["path"]: (each["type"], each["size"]) for each in listing["details"]}
    assert (status, listing["total"]) == (200, 2)
    assert files == {"ships/a.txt": ("file", 3), "ships/deep": ("directory", None)}
    status, info = await details("ships/a.txt", "info")
    assert (status, info["type"], info["size"]) == (200, "file", 3)
    assert (await details("ships/no", "info"))[0] == 404

    rename = {"body": b"", "allow_nonstandard_methods": True}
    assert (await store("PATCH", "ships/a.txt", params={"to": "ships/c d.txt"}, **rename))[0] == 204
    assert (await store("GET", "ships/c d.txt")) == (200, b"abc")
    assert (await details("ships/a.txt", "info"))[0] == 404
    assert (await store("PATCH", "ships/deep", params={"to": "ports"}, **rename))[0] == 204
    assert (await store("GET", "ports/b.txt")) == (200, b"")
    for source, target, code in (
        ("ports/b.txt", "ships/c d.txt", 400),
        ("ships", "ships/in/itself", 400),
        ("no", "where", 404),
        ("ships", "/", 400),
    ):
        status, answer = await store("PATCH", source, params={"to": target}, **rename)
        assert (status, bool(answer["detail"])) == (code, True), target
    assert (await store("PATCH", "ships", **rename))[0] == 422
    assert (await store("GET", "ships/c d.txt")) == (200, b"abc")


async def test_requests_refused_by_the_store(store: Any) -> None:
    assert (await store("GET", "no/such"))[0] == 404
    assert (await store("GET", "no/such", params={"list": "true"}))[0] in (200, 404)
    for path in ("../x", "a/../../x"):
        status, answer = await store("PUT", path, b"x")
        assert (status, bool(answer["detail"])) == (400, True), path
    wrong = {"headers": {"Authorization": "token wrong"}}
    for method, body in (("GET", None), ("PUT", b"x" * 200_000), ("DELETE", None)):
        assert (await store(method, "x", body, **wrong))[0] == 403
    assert (await store("GET", "x"))[0] == 404


@pytest.mark.shared_server
async def test_skills_are_listed(ask: Any) -> None:
    status, skills = await ask("skills")
    assert status == 200
    by_name = {skill["name"]: skill for skill in skills}
    assert "path: str" in by_name["open_file"]["signature"]
    assert by_name["open_file"]["docstring"]


@pytest.mark.thorough
@pytest.mark.browser
async def test_the_last_page(ask: Any, act: Any, jp_fetch: Any, tmp_path: Any) -> None:
    await act("run", command="true")
    status, answer = await ask("browser", "marks")
    assert (status, answer["detail"][:19]) == (404, "No page was visited")
    page = tmp_path / "page.html"
    page.write_text("<title>T</title><button>press</button>")
    await act("browse_interactive", browser_actions=f'goto("file://{page}")', return_axtree=True)
    status, marks = await ask("browser", "marks")
    assert (status, marks["url"]) == (200, f"file://{page}")
    assert marks["extra_element_properties"]
    for kind in ("screenshot", "set_of_marks"):
        picture = await jp_fetch("oh_jupyter", "browser", kind)
        assert picture.headers["Content-Type"] == "image/png"
        assert picture.body.startswith(b"\x89PNG")


async def _waiting(ask: Any, kernel: str) -> Any:
    async with asyncio.timeout(60):
        while True:
            status, waiting = await ask("kernels", kernel, "confirmations")
            if status == 200 and waiting:
                return waiting


async def test_a_risky_action_waits_in_a_shared_kernel(
    ask: Any, act: Any, plain_kernel: str, jp_serverapp: Any, monkeypatch: Any
) -> None:
    await act("run", plain_kernel, command="true")
    state_of(jp_serverapp.web_app.settings).confirmation_over_rest = True
    for approve in (True, False):
        asked = asyncio.ensure_future(act("run", plain_kernel, command="echo x; sudo -n true"))
        (question,) = await _waiting(ask, plain_kernel)
        assert question["reason"] == "it becomes another user"
        where = ("kernels", plain_kernel, "confirmations", str(question["id"]))
        assert (await ask(*where, body={"approve": "yes"}))[0] == 422
        status, refused = await ask(*where, body={"approve": approve, "because": "x"})
        assert (status, "Unknown field 'because'" in refused["detail"]) == (422, True)
        monkeypatch.setenv("SESSION_API_KEY", "secret")
        agent = {"X-Session-API-Key": "secret"}
        assert (await ask(*where, body={"approve": True}, headers=agent))[0] == 403
        monkeypatch.delenv("SESSION_API_KEY")
        with pytest.raises(json.JSONDecodeError):  # there is no body: 204
            await ask(*where, body={"approve": approve, "reason": "not on this machine"})
        status, observation = await asked
        assert status == 200
        assert observation["observation"] == ("run" if approve else "user_rejected")
        assert ("not on this machine" in observation["content"]) is not approve
        assert (await ask(*where, body={"approve": True}))[0] == 404
    _, log = await ask("kernels", plain_kernel, "events")
    asked_for = [e for e in log["events"] if "sudo" in e.get("args", {}).get("command", "")]
    assert [e["args"]["confirmation_state"] for e in asked_for] == ["awaiting_confirmation"] * 2


async def test_the_token_approves_nothing_by_default(ask: Any, act: Any, plain_kernel: str) -> None:
    # Nor does it help to call oneself the person.
    action = {"action": "run", "args": {"command": "echo x; sudo -n true"}, "source": "user"}
    where = ("kernels", plain_kernel)
    asked = asyncio.ensure_future(ask(*where, "execute_action", body={"action": action}))
    (question,) = await _waiting(ask, plain_kernel)
    decision = (*where, "confirmations", str(question["id"]))
    status, answer = await ask(*decision, body={"approve": True})
    assert status == 403
    assert re.search(r"(?<!%)%oh_confirm", answer["detail"])
    assert "c.OhJupyter.confirmation_over_rest = True" in answer["detail"]
    for code in ("%oh_confirm --all", "oh.confirm()"):
        status, refused = await act("run_ipython", plain_kernel, code=code)
        assert "this is an agent's cell" in refused["content"]
    nested = asyncio.ensure_future(
        act("run_ipython", plain_kernel, code="word = 'su'; oh.run(f'echo x; {word}do -n true')")
    )
    async with asyncio.timeout(60):
        while len(waiting := (await ask(*where, "confirmations"))[1]) < 2:
            pass
    for each in waiting:
        with pytest.raises(json.JSONDecodeError):  # there is no body: 204
            await ask(*where, "confirmations", str(each["id"]), body={"approve": False})
    assert (await asked)[1]["observation"] == "user_rejected"
    assert "rejected" in (await nested)[1]["content"]


async def test_unused_kernels_are_left_alone(
    ask: Any, plain_kernel: str, jp_serverapp: Any
) -> None:
    assert await ask("kernels", plain_kernel, "confirmations") == (200, [])
    assert await ask("confirmations") == (200, [])
    assert (await ask("kernels", "none", "confirmations"))[0] == 404
    assert list(jp_serverapp.kernel_manager.list_kernel_ids()) == [plain_kernel]


async def test_the_default_kernel_asks_no_questions(act: Any) -> None:
    status, observation = await act("run", command="echo x; sudo -n true")
    assert (status, observation["observation"]) == (200, "run")


@pytest.mark.thorough
async def test_a_read_only_request_gets_no_content_when_the_kernel_restarts(
    ask: Any, act: Any, plain_kernel: str, jp_serverapp: Any, monkeypatch: Any
) -> None:
    await act("run", plain_kernel, command="true")
    link = state_of(jp_serverapp.web_app.settings).router.link(plain_kernel)
    request, sent = link.request, asyncio.Semaphore(0)

    def noted(*args: Any, **kwargs: Any) -> Any:
        sent.release()
        return request(*args, **kwargs)

    monkeypatch.setattr(link, "request", noted)
    manager = jp_serverapp.kernel_manager
    os.kill(manager.get_kernel(plain_kernel).provisioner.process.pid, signal.SIGSTOP)
    where = ("kernels", plain_kernel, "events")
    looking = [asyncio.ensure_future(ask(*where, params={"if_loaded": "true"}))]
    looking.append(asyncio.ensure_future(ask(*where)))
    await sent.acquire()
    await sent.acquire()
    await manager.restart_kernel(plain_kernel, now=True)
    with pytest.raises(json.JSONDecodeError):  # there is no body: 204
        await looking[0]
    assert (await looking[1])[0] == 503
