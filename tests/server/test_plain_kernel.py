"""A kernel that was started without oh_jupyter, as a notebook starts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from jupyter_client.ioloop import AsyncIOLoopKernelManager

from oh_jupyter.errors import ExtensionMissingError
from oh_jupyter.server.links import ZmqLink


async def test_it_is_asked_before_and_after_a_runtime_is_in_it(tmp_path: Path) -> None:
    manager = AsyncIOLoopKernelManager(kernel_name="python3")
    log = tmp_path / "log"
    with log.open("wb") as written:
        await manager.start_kernel(stderr=written)
    link = ZmqLink("plain", manager)
    try:
        with pytest.raises(ExtensionMissingError, match="not loaded in kernel plain"):
            await link.request("status", load=False)
        assert (await link.request("status")).fields["status"] == "ok"
        cell = {"code": "%unload_ext oh_jupyter", "silent": True}
        await link.ask("execute_request", cell, channel="shell")
        with pytest.raises(ExtensionMissingError, match="not loaded in kernel plain"):
            await link.request("status", load=False)
        assert (await link.request("status")).fields["status"] == "ok"
    finally:
        link.close()
        await manager.shutdown_kernel(now=True)
    assert "ERROR" not in log.read_text()
