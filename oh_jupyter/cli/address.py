"""The server or kernel that a command is about."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oh_jupyter.server.running import RunningServer


def add_address(parser: argparse.ArgumentParser) -> None:
    """Add the options --url and --token."""
    parser.add_argument(
        "--url",
        default=os.environ.get("OH_URL"),
        help="address of a Jupyter server, or of oh_jupyter in it (default: $OH_URL, else the "
        "server that is running here)",
    )
    parser.add_argument(
        "--token", default=os.environ.get("OH_TOKEN"), help="its token (default: $OH_TOKEN)"
    )


def find(
    options: argparse.Namespace, notebook: str | None, *, prefer_open: bool = False
) -> RunningServer:
    """Return the server or kernel that the options name; raise OhJupyterError if there is none."""
    from oh_jupyter.server.running import find_server, server_at
    from oh_jupyter.server.tokens import PREFIX

    if options.url is None:
        server = find_server(notebook, prefer_open=prefer_open)
        is_scoped = (options.token or "").startswith(PREFIX)
        return replace(server, token=options.token) if is_scoped else server
    return server_at(options.url, options.token or "", notebook)
