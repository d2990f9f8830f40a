"""Finding the Jupyter server that is running here, and the kernel of an open notebook."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from oh_jupyter.errors import KernelNotFoundError

__all__ = ["RunningServer", "find_server", "server_at"]


@dataclass(frozen=True)
class RunningServer:
    """Where requests go.

    Attributes:
        url: Address of the extension on that server, or of one kernel below it.
        token: The server's token, "" if it has none.
    """

    url: str
    token: str


def find_server(notebook: str | None = None) -> RunningServer:
    """Find the newest Jupyter server of this user.

    Args:
        notebook: Name or path of an open notebook whose kernel is meant; None for the
            default kernel.

    Returns:
        The server.

    Raises:
        KernelNotFoundError: No server is running, or the notebook is not open in it.
    """
    from jupyter_server.serverapp import list_running_servers

    found: list[dict[str, Any]] = list(list_running_servers())
    if not found:
        raise KernelNotFoundError("No Jupyter server is running here. Start one with: make lab")
    server = max(found, key=lambda info: int(info["pid"]))
    base, token = str(server["url"]).rstrip("/"), str(server.get("token") or "")
    url = f"{base}/oh_jupyter"
    if notebook is not None:
        url = f"{url}/kernels/{_kernel_of(notebook, base, token)}"
    return RunningServer(url, token)


def server_at(url: str, token: str, notebook: str | None = None) -> RunningServer:
    """Take a server whose address is known.

    Args:
        url: Address of a Jupyter server, of the extension on it, or of a kernel below that.
        token: Its token, "" if it has none.
        notebook: As for ``find_server``.

    Returns:
        The server.

    Raises:
        KernelNotFoundError: The notebook is not open in it.
    """
    base, extension, below = url.partition("?")[0].rstrip("/").partition("/oh_jupyter")
    if notebook is not None:
        below = f"/kernels/{_kernel_of(notebook, base, token)}"
    return RunningServer(f"{base}/oh_jupyter{below if extension or notebook else ''}", token)


def _kernel_of(notebook: str, base: str, token: str) -> str:
    import requests

    headers = {"Authorization": f"token {token}"} if token else {}
    answer = requests.get(f"{base}/api/sessions", headers=headers, timeout=10)
    answer.raise_for_status()
    sessions = answer.json()
    for session in sessions:
        path = PurePosixPath(str(session.get("path", "")))
        if session.get("kernel") and path.match(notebook):
            return str(session["kernel"]["id"])
    names = ", ".join(str(session.get("path")) for session in sessions) or "none"
    raise KernelNotFoundError(f"{notebook} is not open in {base}. Open notebooks: {names}")
