"""The command ``mcp``, for clients that start a program."""

from __future__ import annotations

import argparse
from typing import Any

from oh_jupyter.cli.address import add_address, find


def add_mcp(commands: Any) -> None:
    """Add the command to a parser."""
    relay = commands.add_parser(
        "mcp",
        help="offer the running server's MCP tools on standard input and output",
        description="For MCP clients that start a program: relays to the server that is running "
        "here, or to the one at --url.",
    )
    relay.add_argument("--notebook", help="an open notebook, for the tools of its own kernel")
    add_address(relay)
    relay.set_defaults(run=_relay_mcp)


def _relay_mcp(options: argparse.Namespace) -> int:
    from oh_jupyter.server.mcp.launcher import run

    return run(lambda: find(options, options.notebook, prefer_open=True))
