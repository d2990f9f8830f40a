"""An MCP server with the one tool ``bash``: ``python -m … FOLDER``.

Each command has a new shell in the folder, so that nothing but files is kept between two calls.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from oh_jupyter._version import __version__
from oh_jupyter.errors import McpError
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.mcp_sdk.stream_server import StreamServer
from oh_jupyter.text import shorten

TIMEOUT_SECONDS = 300.0
MAX_OUTPUT_CHARS = 30_000
MAX_LINE_BYTES = 16 * 1024**2

BASH = {
    "name": "bash",
    "description": "Run a command in a new bash shell. Only files are kept between commands.",
    "inputSchema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}


class BashTools:
    """The tool, as an MCP server offers it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def list_tools(self, *, has_apps: bool = False) -> list[dict[str, Any]]:
        """List the tool."""
        return [BASH]

    async def call_tool(self, call: ToolRequest) -> dict[str, Any]:
        """Run a command, and return its output and errors in one text."""
        output, status = await asyncio.to_thread(self._run, str(call.arguments.get("command", "")))
        output = shorten(output, MAX_OUTPUT_CHARS, marker="\n[{omitted} more]")
        if status:
            output += f"\n[exit status {status}]"
        return {"content": [{"type": "text", "text": output}], "isError": bool(status)}

    def _run(self, command: str) -> tuple[str, int]:
        try:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self._folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"It did not end within {TIMEOUT_SECONDS:g} s.", 1
        return done.stdout.decode("utf-8", "replace"), done.returncode

    async def start_task(self, call: ToolRequest, delay_seconds: float) -> NoReturn:
        """Reject a task."""
        raise McpError("This server has no tasks")

    async def task(
        self,
        scope: Mapping[str, Any],
        id: str,
        *,
        cancel: bool = False,
        wait: bool = False,
        responses: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> NoReturn:
        """Reject a request about a task."""
        raise McpError("This server has no tasks")


async def serve(folder: Path) -> None:
    """Serve the client on standard input and output until it disconnects."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    server = StreamServer(BashTools(folder), name="bash", version=__version__, instructions="")
    await server.serve(reader, writer)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
