"""The open notebook that a chat message means."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import dirname

from oh_jupyter.errors import KernelNotFoundError
from oh_jupyter.mcp_tools.notebooks import OpenNotebook


def choose_notebook(
    opened: Sequence[OpenNotebook], attached: Sequence[str], last: str | None, chat: str
) -> OpenNotebook:
    """Return the notebook to work in.

    That is the attached one, else the chat's last one, else the only one beside the chat, else the
    only open one.

    Args:
        opened: The open notebooks.
        attached: Paths of the message's attachments.
        last: Path of the notebook of the previous message, if any.
        chat: Path of the chat.

    Raises:
        KernelNotFoundError: None is open, or several are and the message does not say which.
    """
    running = [each for each in opened if each.kernel_id is not None]
    for path in attached:
        if chosen := [each for each in running if each.path == path]:
            return chosen[0]
        if path.endswith(".ipynb"):
            raise KernelNotFoundError(f"{path} has no running kernel: open it, then ask again")
    for group in (
        [each for each in running if each.path == last],
        [each for each in running if dirname(each.path) == dirname(chat)],
        running,
    ):
        if len(group) == 1:
            return group[0]
    if not running:
        raise KernelNotFoundError("No notebook is open. Open one, then ask again")
    paths = ", ".join(sorted(each.path for each in running))
    raise KernelNotFoundError(
        f"Several notebooks are open ({paths}). Attach the one to work in to your message"
    )
