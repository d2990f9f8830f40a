"""People's work with notebooks in a Jupyter server."""

from __future__ import annotations

import requests

from oh_jupyter.testing import LiveServer


def open_notebook(server: LiveServer, name: str) -> str:
    """As a person opens one: with a kernel, whose id comes back."""
    body = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
    answer = requests.post(
        f"{server.url}/api/sessions", json=body, headers=server.headers, timeout=60
    )
    answer.raise_for_status()
    return str(answer.json()["kernel"]["id"])


def shut_down(server: LiveServer, kernel: str) -> None:
    """As a person shuts a kernel down."""
    requests.delete(
        f"{server.url}/api/kernels/{kernel}", headers=server.headers, timeout=60
    ).raise_for_status()
