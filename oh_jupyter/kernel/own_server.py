"""The Jupyter server that has this kernel, and its notebook.

VS Code's sessions on a Jupyter server have made-up paths, and its own kernels have no session. It
names the notebook in a variable, and each cell in the metadata of its request.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_jupyter.loopback import is_local
from oh_jupyter.server_notes import server_notes

if TYPE_CHECKING:
    import requests


FIND_TIMEOUT_SECONDS = 5.0
TABS_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class OwnServer:
    """Address of this kernel on a server of this user.

    Attributes:
        url: Address of the kernel below the extension.
        token: Token of the server, or "".
    """

    url: str
    token: str = field(repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of a request."""
        return {"Authorization": f"token {self.token}"} if self.token else {}

    def save_tabs(self) -> None:
        """Make JupyterLab's tabs save their changes; ignore failures."""
        self._post_to_tabs({})

    def check_tabs(self) -> None:
        """Make JupyterLab's tabs look at their files, which an agent may have changed."""
        self._post_to_tabs({"check": "true"})

    def _post_to_tabs(self, parameters: Mapping[str, str]) -> None:
        address = f"{self.url.rpartition('/kernels/')[0]}/unsaved"
        with suppress(OSError), _session(address) as session:
            session.post(
                address, params=parameters, headers=self.headers, timeout=TABS_TIMEOUT_SECONDS
            )


def _session(url: str) -> requests.Session:
    """Return a session that sends nothing for this machine to a proxy."""
    import requests

    session = requests.Session()
    session.trust_env = not is_local(url)
    return session


def find_server(kernel_id: str) -> OwnServer | None:
    """Return the server of this user that has a kernel, or None; its parent comes first."""
    parent = f"jpserver-{os.environ.get('JPY_PARENT_PID', '')}.json"
    for note in sorted(server_notes(), key=lambda note: note.file != parent):
        server = OwnServer(f"{note.url}/oh_jupyter/kernels/{kernel_id}", note.token)
        try:
            with _session(server.url) as session:
                response = session.get(
                    f"{server.url}/alive", headers=server.headers, timeout=FIND_TIMEOUT_SECONDS
                )
        except OSError:  # those of requests, too
            continue
        if response.ok:
            return server
    return None


VSCODE_VARIABLE = "__vsc_ipynb_file__"
"""Variable with the path of the notebook on the machine of VS Code."""

VSCODE_CELL = "vscode-notebook-cell:"
"""Start of the ids of VS Code's cells, which are URIs."""


def notebook_file(variables: Mapping[str, Any], directory: str = "") -> str:
    """Return the absolute path of the notebook of a kernel with these variables, or "".

    A path of VS Code can be one on another machine. A relative path is one in the directory.
    """
    names = (variables.get(VSCODE_VARIABLE), os.environ.get("JPY_SESSION_NAME"))
    file = next((name for name in names if isinstance(name, str) and name), "")
    return os.path.abspath(os.path.join(directory, file)) if file else ""


def is_from_vscode(request: Mapping[str, Any]) -> bool:
    """Return whether VS Code sent a request, such as the one of the running cell."""
    cell_id = request.get("metadata", {}).get("cellId")
    return isinstance(cell_id, str) and cell_id.startswith(VSCODE_CELL)
