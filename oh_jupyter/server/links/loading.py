"""Loading oh_jupyter into a kernel that was started without it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from oh_jupyter.errors import ExtensionMissingError

__all__ = ["LOAD_EXTENSION", "load_extension", "loading_with"]

LOAD_EXTENSION = "%load_ext oh_jupyter"
"""The cell that loads it."""

FREE_SHELL_SECONDS = 1.0
"""Seconds that a free main shell may take to answer."""


class Ask(Protocol):
    """Sends a request and returns the reply."""

    async def __call__(
        self,
        msg_type: str,
        content: dict[str, Any],
        *,
        channel: str = "control",
        subshell: str | None = None,
    ) -> dict[str, Any]:
        """The reply message to a request on a channel, perhaps for a subshell."""
        ...


def loading_with(settings: Mapping[str, Any], confirmation: str | None = None) -> str:
    """The cell that loads oh_jupyter with settings of the server.

    The server's policy of ``confirmation`` holds where the kernel's configuration has none.
    """
    plain = {
        name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()
    }
    lines = [f"get_ipython().config.OhJupyter.update({plain!r})"] if plain else []
    if confirmation is not None and "confirmation" not in plain:
        lines.append(f"get_ipython().config.OhJupyter.setdefault('confirmation', {confirmation!r})")
    return "\n".join([*lines, LOAD_EXTENSION])


async def load_extension(
    ask: Ask, kernel_id: str, *, busy: bool, code: str = LOAD_EXTENSION
) -> None:
    """Load oh_jupyter into a kernel, or raise ExtensionMissingError where that cannot be.

    A busy kernel (gateways do not always know) is reached through a subshell, where it has
    them; elsewhere the request waits behind the running cell.
    """
    info = (await ask("kernel_info_request", {}))["content"]
    language = info.get("language_info", {}).get("name", "an unknown language")
    if language != "python":
        raise ExtensionMissingError(
            f"Kernel {kernel_id} runs {language}: oh_jupyter needs an IPython kernel"
        )
    subshell = None
    has_subshells = "kernel subshells" in info.get("supported_features", [])
    if has_subshells and (busy or not await _shell_is_free(ask)):
        subshell = (await ask("create_subshell_request", {}))["content"].get("subshell_id")
    content = {
        "code": code,
        "silent": True,
        "store_history": False,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }
    try:
        message = await ask("execute_request", content, channel="shell", subshell=subshell)
    finally:
        if subshell is not None:
            await ask("delete_subshell_request", {"subshell_id": subshell})
    reply = message["content"]
    if reply.get("status") != "ok":
        raise ExtensionMissingError(
            f"oh_jupyter cannot be loaded into kernel {kernel_id}: "
            f"{reply.get('ename')}: {reply.get('evalue')}. Install it in the kernel's "
            "environment with: pip install oh_jupyter"
        )


async def _shell_is_free(ask: Ask) -> bool:
    try:
        async with asyncio.timeout(FREE_SHELL_SECONDS):
            await ask("kernel_info_request", {}, channel="shell")
    except TimeoutError:
        return False
    return True
