"""Loading oh_jupyter into a kernel that somebody else started."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_client.session import Session

from oh_jupyter.errors import ExtensionMissingError

__all__ = ["load_extension"]

CODE = "%load_ext oh_jupyter"

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


async def load_extension(manager: Any, ask: Ask, kernel_id: str) -> None:
    """Run ``%load_ext oh_jupyter`` in a kernel.

    A busy kernel is reached through a subshell, where it has them; elsewhere the request
    waits behind the running cell.

    Args:
        manager: The kernel's KernelManager.
        ask: Sends a control request and returns the reply.
        kernel_id: The server's id of the kernel, for messages.

    Raises:
        ExtensionMissingError: It is no IPython kernel, or its environment has no oh_jupyter.
    """
    info = (await ask("kernel_info_request", {}))["content"]
    language = info.get("language_info", {}).get("name", "an unknown language")
    if language != "python":
        raise ExtensionMissingError(
            f"Kernel {kernel_id} runs {language}: oh_jupyter needs an IPython kernel"
        )
    subshell = None
    busy = getattr(manager, "execution_state", "idle") == "busy"
    if busy and "kernel subshells" in info.get("supported_features", []):
        subshell = (await ask("create_subshell_request", {}))["content"].get("subshell_id")
    try:
        reply = await _execute(manager, CODE, subshell)
    finally:
        if subshell is not None:
            await ask("delete_subshell_request", {"subshell_id": subshell})
    if reply.get("status") != "ok":
        raise ExtensionMissingError(
            f"oh_jupyter cannot be loaded into kernel {kernel_id}: "
            f"{reply.get('ename')}: {reply.get('evalue')}. Install it in the kernel's "
            "environment with: pip install oh_jupyter"
        )


async def _execute(manager: Any, code: str, subshell: str | None) -> dict[str, Any]:
    """Run code silently on the shell channel and return the content of the reply."""
    session = Session(key=manager.session.key, signature_scheme=manager.session.signature_scheme)
    replied: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    stream = manager.connect_shell(identity=session.bsession)
    content = {
        "code": code,
        "silent": True,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }
    message = session.msg("execute_request", content)
    if subshell is not None:
        message["header"]["subshell_id"] = subshell

    def receive(frames: list[Any]) -> None:
        _, parts = session.feed_identities(frames)
        reply = session.deserialize(parts)
        ours = reply["parent_header"].get("msg_id") == message["header"]["msg_id"]
        if ours and not replied.done():
            replied.set_result(reply["content"])

    stream.on_recv(receive)
    try:
        session.send(stream, message)
        return await replied
    finally:
        stream.on_recv(None)
        stream.close(linger=0)
