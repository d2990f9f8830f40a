"""Uploads that cannot be ended: the kernel dies, or the disk is full."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from waiting import until

pytestmark = pytest.mark.thorough

MEGABYTE = 1024**2


@pytest.mark.shared_server
@pytest.mark.parametrize(
    "another",
    [
        pytest.param(False, id="at once"),
        pytest.param(True, id="another one is there", marks=pytest.mark.thorough),
    ],
)
async def test_nothing_is_left_of_one_whose_kernel_dies(
    mcp_url: str,
    jp_auth_header: dict[str, str],
    act: Any,
    plain_kernel: str,
    tmp_path: Path,
    another: bool,
) -> None:
    target = tmp_path / "target"
    _, cell = await act("run_ipython", plain_kernel, code="import os; os.getpid()")
    kernel_pid = int(cell["content"].partition("\n")[0])

    async def form() -> AsyncIterator[bytes]:
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        yield b"x" * (1 if another else 2 * MEGABYTE)
        await until(target.exists)
        if another:  # nothing of the upload is on its way
            await act("run", plain_kernel, command="true")
        # What came is being written: that must not be there afterwards.
        os.kill(kernel_pid, signal.SIGKILL)
        async with asyncio.timeout(60):
            while another and (await act("run", plain_kernel, command="true"))[0] != 200:
                pass
        yield b"\r\n--b--\r\n"

    headers = {**jp_auth_header, "Content-Type": "multipart/form-data; boundary=b"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as client:
        address = f"{mcp_url}/kernels/{plain_kernel}/upload_file"
        answer = await client.post(address, params={"destination": str(target)}, content=form())
    assert (answer.status_code, answer.json()["error"]) == (503, "KernelDiedError"), answer.text
    assert list(target.iterdir()) == []


@pytest.fixture
def disk(mount_disk: Callable[[int], Path]) -> Path:
    return mount_disk(2)


class TestFullDisk:
    @pytest.fixture
    def jp_server_config(self, jp_server_config: dict[str, Any], disk: Path) -> dict[str, Any]:
        return {**jp_server_config, "OhJupyter": {"file_store_path": str(disk)}}

    @pytest.mark.thorough
    async def test_it_is_reported_by_the_store_and_by_uploads(
        self, mcp_url: str, jp_auth_header: dict[str, str], disk: Path
    ) -> None:
        contents = os.urandom(4 * MEGABYTE)
        async with httpx.AsyncClient(headers=jp_auth_header, timeout=60) as client:
            assert (await client.put(f"{mcp_url}/store/small", content=b"x")).status_code == 204
            answer = await client.put(f"{mcp_url}/store/large", content=contents)
            assert (answer.status_code, answer.json()["error"]) == (507, "DiskFullError")
            assert "No space left" in answer.json()["detail"]
            answer = await client.post(
                f"{mcp_url}/upload_file",
                params={"destination": str(disk / "uploads")},
                files={"file": ("large", contents)},
            )
            assert (answer.status_code, answer.json()["error"]) == (507, "DiskFullError")
            assert (await client.get(f"{mcp_url}/store/small")).content == b"x"
            assert (await client.get(f"{mcp_url}/store/large")).status_code == 404
        assert list((disk / "uploads").iterdir()) == []
