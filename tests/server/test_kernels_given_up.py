"""Kernels that die and die: Jupyter gives them up, and what is said then is true."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from oh_jupyter.errors import KernelDiedError
from oh_jupyter.operations.files import DownloadFile, Receive
from oh_jupyter.operations.runtime import Status
from oh_jupyter.server.default_kernel import DefaultKernel
from oh_jupyter.server.links import KernelTransfer
from oh_jupyter.server.state import state_of

DIE = "import ctypes; ctypes.string_at(0)"  # an exit would wait for a person
SLEEP = "import time; time.sleep(600)"
LIMIT = 2


def link_to(server: Any, kernel: str) -> Any:
    return state_of(server.web_app.settings).router.link(kernel)


# Deaths are noticed sooner than by default, fewer are tolerated, and none is forgotten.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.server_config(
        KernelRestarter={"time_to_dead": 0.2, "restart_limit": LIMIT, "stable_start_time": 600},
        OhJupyter={"default_kernel_name": "mine"},
    ),
]


@pytest.fixture(autouse=True)
def spec(jp_data_dir: Path) -> Callable[..., None]:
    """Write the kernelspec of the default kernel, which is a good one at first."""
    path = jp_data_dir / "kernels" / "mine" / "kernel.json"
    path.parent.mkdir(parents=True)

    def write(*argv: str) -> None:
        argv = argv or (sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}")
        text = json.dumps({"argv": argv, "display_name": "Mine", "language": "python"})
        path.write_text(text)

    write()
    return write


async def die_until_given_up(act: Any, kernel: str | None = None) -> list[str]:
    """Return the message of each death."""
    messages: list[str] = []
    async with asyncio.timeout(90):
        while not messages or "has given it up" not in messages[-1]:
            status, answer = await act("run_ipython", kernel, code=DIE)
            assert (status, answer["error"]) == (503, "KernelDiedError")
            messages.append(answer["detail"])
    return messages


@pytest.mark.thorough
async def test_an_open_kernel_is_given_up(act, ask, plain_kernel) -> None:
    messages = await die_until_given_up(act, plain_kernel)
    assert len(messages) == LIMIT + 1
    for detail in messages[:-1]:
        assert (
            "was ended by signal SIGSEGV before it answered; the state of its runtime is" in detail
        )
        assert detail.endswith("The next request finds a fresh one")
    assert messages[-1].endswith("Jupyter has given it up. Restart it from its notebook")
    status, answer = await act("run", plain_kernel, command="true")
    assert (status, answer["error"]) == (404, "KernelNotFoundError")
    assert "has given it up. Restart it from its notebook; it has another id" in answer["detail"]
    assert (await ask("kernels", plain_kernel, "alive"))[0] == 404
    status, answer = await act("run", "no-such-kernel", command="true")
    assert (status, answer["detail"][:25]) == (404, "There is no kernel 'no-su")


async def test_a_download_whose_kernel_died_is_not_looked_for_in_the_next_one(
    act, plain_kernel, jp_serverapp, tmp_path
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    link = link_to(jp_serverapp, plain_kernel)
    reply = await link.request(DownloadFile(str(tmp_path / "file")))
    download = KernelTransfer.started(link, reply)
    assert (await act("run_ipython", plain_kernel, code=DIE))[0] == 503
    assert (await act("run", plain_kernel, command="true"))[0] == 200
    with pytest.raises(KernelDiedError, match="state of its runtime is lost"):
        await download.request(Receive(download.id))


@pytest.mark.thorough
async def test_the_default_kernel_is_replaced(act, ask, jp_serverapp) -> None:
    messages = await die_until_given_up(act)
    assert len(messages) == LIMIT + 1
    assert messages[-1].endswith("Jupyter has given it up. The next request starts another")
    assert (await ask("server_info"))[1]["default_kernel"] is None
    status, observation = await act("run", command="echo here again")
    assert (status, observation["content"]) == (200, "here again")
    kernel = (await ask("server_info"))[1]["default_kernel"]
    assert list(jp_serverapp.kernel_manager.list_kernel_ids()) == [kernel]


@pytest.mark.thorough
async def test_one_that_ends_at_once_is_named_and_not_started_again_and_again(
    act, spec, jp_serverapp, tmp_path
) -> None:
    starts = tmp_path / "starts"
    spec(sys.executable, "-c", f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(3)")
    answers = await asyncio.gather(*(act("run", command="true") for _ in range(5)))
    for status, answer in answers:
        assert (status, answer["error"]) == (503, "KernelDiedError")
        assert answer["detail"].startswith("The default kernel (mine) ended with exit code 3 ")
        assert "is in the server's log" in answer["detail"]
    async with asyncio.timeout(60):
        while "2 times in a row" not in (await act("run", command="true"))[1]["detail"]:
            pass
        # Jupyter starts each once more before it can be shut down.
        assert starts.read_text() <= "xxxx"
        await until(lambda: not list(jp_serverapp.kernel_manager.list_kernel_ids()))
        spec()
        while (await act("run", command="true"))[0] == 503:
            pass
    status, observation = await act("run", command="echo mended")
    assert (status, observation["content"]) == (200, "mended")


async def test_one_that_ends_before_its_first_request_is_named(
    act, spec, jp_serverapp, tmp_path, monkeypatch
) -> None:
    starts = tmp_path / "starts"
    spec(sys.executable, "-c", f"open({str(starts)!r}, 'a').write('x'); raise SystemExit(3)")
    start_kernel = jp_serverapp.kernel_manager.start_kernel

    async def start_and_die(**arguments: Any) -> str:
        """Return only after Jupyter has noticed the death and started the kernel again."""
        known = len(starts.read_text()) if starts.exists() else 0
        kernel_id: str = await start_kernel(**arguments)
        await until(lambda: starts.exists() and len(starts.read_text()) >= known + 2)
        return kernel_id

    monkeypatch.setattr(jp_serverapp.kernel_manager, "start_kernel", start_and_die)
    status, answer = await act("run", command="true")
    assert (status, answer["error"]) == (503, "KernelDiedError")
    assert answer["detail"].startswith("The default kernel (mine) ended with exit code 3 ")
    await until(lambda: not list(jp_serverapp.kernel_manager.list_kernel_ids()))


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "another"])
async def test_one_that_ends_only_at_its_first_start_is_started_again(
    act, spec, tmp_path, jp_serverapp, is_default: bool
) -> None:
    first = tmp_path / "first"
    code = (
        f"import pathlib, runpy, sys; path = pathlib.Path({str(first)!r})\n"
        "if not path.exists(): path.touch(); raise SystemExit(1)\n"
        "runpy.run_module('ipykernel_launcher', run_name='__main__')"
    )
    spec(sys.executable, "-c", code, "-f", "{connection_file}")
    kernels = jp_serverapp.kernel_manager
    kernel = None if is_default else await kernels.start_kernel(kernel_name="mine")
    answers = await asyncio.gather(*(act("run", kernel, command="echo here") for _ in range(3)))
    assert first.exists()
    assert [(status, seen["content"]) for status, seen in answers] == [(200, "here")] * 3


async def test_one_that_cannot_be_started_is_named_with_the_reason(act, spec) -> None:
    spec("/no/such/python")
    status, answer = await act("run", command="true")
    assert status == 500
    assert "The default kernel (mine) cannot be started" in answer["detail"]
    assert "/no/such/python" in answer["detail"]


async def test_the_pause_between_attempts_grows_and_ends() -> None:
    class Kernels:
        default_kernel_name = "there"

        async def start_kernel(self, **options: Any) -> str:
            return "1"

    now = 0.0
    kernel = DefaultKernel(Kernels(), clock=lambda: now)
    pauses = []
    for _ in range(8):
        assert await kernel.start() == kernel.id == "1"
        message = str(kernel.failed("died"))
        assert kernel.id is None
        pauses.append(int(message.rpartition("possible in ")[2].partition(" s")[0]))
        now += pauses[-1] - 0.1
        with pytest.raises(KernelDiedError, match="The next attempt is possible in 1 s"):
            await kernel.start()
        now += 0.2
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert "(there) died before it answered anything, 8 times in a row. " in message
    kernel.answered()
    assert "times" not in str(kernel.failed("died"))


# As where Jupyter does not keep the ports that it chose first.
@pytest.mark.server_config(KernelManager={"cache_ports": False})
class TestOtherPorts:
    @pytest.mark.slow
    async def test_an_open_kernel_is_found_at_other_ports(
        self, act, plain_kernel, jp_serverapp
    ) -> None:
        """Jupyter chooses others for a kernel that dies at its start; nothing tells of them."""
        manager = jp_serverapp.kernel_manager.get_kernel(plain_kernel)
        assert (await act("run_ipython", plain_kernel, code="x = 1"))[0] == 200
        before = manager.control_port
        async with asyncio.timeout(90):
            lost = asyncio.ensure_future(act("run_ipython", plain_kernel, code=SLEEP))
            busy = link_to(jp_serverapp, plain_kernel)
            while not json.loads((await busy.request(Status())).body)["running"]:
                pass
            await manager.restart_kernel(now=True, newports=True)
            assert manager.control_port != before
            status, answer = await lost
            assert (status, answer["error"]) == (503, "KernelDiedError")
            assert (await act("run_ipython", plain_kernel, code="'x' in globals()"))[1][
                "content"
            ].startswith("False")
