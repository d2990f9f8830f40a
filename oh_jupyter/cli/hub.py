"""The command ``hub``, a service that JupyterHub starts."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any


def add_hub(commands: Any) -> None:
    """Add the command to a parser."""
    hub = commands.add_parser(
        "hub",
        help="serve one MCP address for the users of a JupyterHub",
        description="A service that JupyterHub starts, see docs/how-to/jupyterhub.md. MCP clients "
        "authorize at the hub, and work on the server of their user.",
    )
    hub.add_argument(
        "--database",
        type=Path,
        default=Path("oh-jupyter-hub.sqlite"),
        metavar="FILE",
        help="where tokens are stored, encrypted (default: oh-jupyter-hub.sqlite)",
    )
    hub.add_argument(
        "--public-url",
        metavar="URL",
        help="address of the hub in people's browsers (default: c.JupyterHub.public_url)",
    )
    hub.add_argument(
        "--servers-url",
        metavar="URL",
        help="address of the hub's proxy for this service, where it differs from the public one",
    )
    hub.add_argument(
        "--no-client-documents",
        action="store_true",
        help="do not fetch documents that describe clients: they register instead",
    )
    hub.set_defaults(run=_serve_hub)


def _serve_hub(options: argparse.Namespace) -> int:
    from oh_jupyter.hub.service import run
    from oh_jupyter.hub.state import hub_settings

    settings = hub_settings(
        os.environ,
        public_url=options.public_url,
        servers_url=options.servers_url,
        database=options.database,
        has_client_documents=not options.no_client_documents,
    )
    if not settings.is_reachable_by_clients:
        print(
            f"oh-jupyter: MCP clients reject {settings.base}, because it is not HTTPS: give the "
            "hub a certificate, or pass the https address with --public-url",
            file=sys.stderr,
        )
    return run(settings)
