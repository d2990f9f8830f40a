"""Progress of a running call, for its client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from oh_jupyter.errors import OhJupyterError
from oh_jupyter.mcp_sdk.offered import ToolRequest
from oh_jupyter.mcp_tools.kernel import CallActions

PROGRESS_INTERVAL_SECONDS = 1.0  # pause between two progress reports of a call
MAX_STATUS_LINES = 3  # lines of output in a status message
MAX_ARGUMENT_CHARS = 100  # characters of a waiting call's first argument in its progress message


async def look(actions: CallActions) -> tuple[str, str]:
    """Return the state of a call's current Action, and its last lines of output."""
    state = text = ""
    if actions.current is not None:
        with suppress(OhJupyterError):
            state, text = await actions.current.look()
    return state, "\n".join(text.splitlines()[-MAX_STATUS_LINES:])


def _for_approval(call: ToolRequest) -> str:
    """Return the progress message of a call that waits for approval."""
    argument = next((value for value in call.arguments.values() if isinstance(value, str)), "")
    excerpt = argument[:MAX_ARGUMENT_CHARS]
    return f"waiting for a person's approval in JupyterLab ({call.name} {excerpt})"


async def report_progress(
    call: ToolRequest, report: Callable[[float, str], Awaitable[None]], actions: CallActions
) -> None:
    """Report the last lines of output, or why and for how long the call has been silent."""
    started = time.monotonic()
    while True:
        seconds = time.monotonic() - started
        state, lines = await look(actions)
        activity = "waiting for another cell" if state == "queued" else "running"
        silent = _for_approval(call) if state == "waiting" else f"{activity} for {seconds:.0f} s"
        await report(seconds, lines or silent)
        await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)
