"""inspect_ai on a Jupyter kernel: its ``SandboxEnvironment`` over the runtime's client.

A sample gets a directory of its own on the kernel's machine; kernel and machine are shared, so run
samples that may disturb each other with ``max_samples=1``. With ``OH_URL`` and ``OH_TOKEN`` set by
``eval "$(oh-jupyter env)"``, and this module imported::

    Task(dataset, solver=..., sandbox="oh_jupyter")

Set ``OH_JUPYTER_CONFIRMATION=never`` where nobody is there to approve what an agent does.
"""

from __future__ import annotations

import os
import shlex
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

from inspect_ai.util import ExecResult, SandboxEnvironment, sandboxenv

from oh_jupyter.client import AsyncRuntimeClient
from oh_jupyter.errors import TransferError
from oh_jupyter.events import CmdOutputObservation

__all__ = ["KernelSandbox"]


@sandboxenv(name="oh_jupyter")
class KernelSandbox(SandboxEnvironment):
    """A directory on the kernel's machine, and the commands in it."""

    def __init__(self, client: AsyncRuntimeClient, directory: str) -> None:
        """Use a directory that is there."""
        super().__init__()
        self._client, self._directory = client, PurePosixPath(directory)

    @classmethod
    async def sample_init(
        cls, task_name: str, config: Any, metadata: dict[str, str]
    ) -> dict[str, SandboxEnvironment]:
        """Make a directory for a sample."""
        client = AsyncRuntimeClient(os.environ["OH_URL"], os.environ.get("OH_TOKEN", ""))
        made = await client.run("mktemp -d", is_static=True)
        return {"default": cls(client, made.content.strip())}

    @classmethod
    async def sample_cleanup(
        cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool
    ) -> None:
        """Remove the directory."""
        for sandbox in environments.values():
            await sandbox._shell(f"rm -rf -- {shlex.quote(str(sandbox._directory))}")
            await sandbox._client.close()

    async def _shell(self, command: str, timeout: float | None = None) -> int:
        found = await self._client.run(command, timeout, is_static=True)
        if not isinstance(found, CmdOutputObservation):
            raise PermissionError(found.content)
        if found.metadata.exit_code == -1:
            raise TimeoutError(f"It did not end within {timeout} s: {command}")
        return found.metadata.exit_code

    async def exec(self, cmd: list[str], input: Any = None, cwd: Any = None, **more: Any) -> Any:
        """Run a command; its streams go through files, so that they are whole and apart."""
        if more.get("user") is not None:
            raise PermissionError(f"Commands run as who runs the kernel, not as {more['user']}")
        streams = self._directory / ".streams"
        await self.write_file(".streams/in", input or b"")
        given = (more.get("env") or {}).items()
        exports = "".join(f"export {name}={shlex.quote(value)}; " for name, value in given)
        place, quoted = self._directory / (cwd or ""), shlex.quote(str(streams))
        command = f"cd {shlex.quote(str(place))} && {{ {exports}{shlex.join(cmd)}; }}"
        redirected = f"{command} <{quoted}/in >{quoted}/out 2>{quoted}/err"
        code = await self._shell(redirected, more.get("timeout"))
        out, err = [await self.read_file(f".streams/{name}") for name in ("out", "err")]
        return ExecResult(code == 0, code, out, err)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file, and the directories to it."""
        target = self._directory / file
        await self._shell(f"mkdir -p {shlex.quote(str(target.parent))}")
        with tempfile.TemporaryDirectory() as folder:
            local = Path(folder) / target.name
            local.write_bytes(contents.encode() if isinstance(contents, str) else contents)
            await self._client.upload(local, str(target.parent))

    async def read_file(self, file: str, text: bool = True) -> Any:
        """Read a file as text or bytes."""
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "file.zip"
            try:
                await self._client.download(str(self._directory / file), archive)
            except TransferError as problem:
                raise FileNotFoundError(str(problem)) from None
            with zipfile.ZipFile(archive) as opened:
                data = opened.read(opened.namelist()[0])
        return data.decode() if text else data
