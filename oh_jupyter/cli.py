"""``oh-jupyter``: what is done from a terminal."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from oh_jupyter._version import __version__
from oh_jupyter.errors import OhJupyterError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; those of the process by default.

    Returns:
        Exit status: 0 if it worked.
    """
    options = _parser().parse_args(arguments)
    try:
        if options.command == "mcp":
            return _relay_mcp(options.notebook, options.url, options.token)
        if options.command == "connect":
            from oh_jupyter.connect.command import connect

            return connect(options)
        return _print_environment(options.notebook) if options.command == "env" else _install()
    except OhJupyterError as problem:
        print(f"oh-jupyter: {problem}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oh-jupyter", description="Set up oh_jupyter, and find its server."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "install-browser",
        help="find a Chromium, Chrome or Edge, or install Chromium",
        description="Use a browser that is there; else install Playwright's Chromium; else "
        "say which package to install.",
    )
    environment = commands.add_parser(
        "env",
        help="print OH_URL and OH_TOKEN of the running server",
        description='Print shell assignments for the server that is running: eval "$(oh-jupyter '
        'env)"',
    )
    environment.add_argument("--notebook", help="an open notebook, for its own kernel's address")
    relay = commands.add_parser(
        "mcp",
        help="offer the running server's MCP tools on standard input and output",
        description="For MCP clients that start a program: relays to the server that is running "
        "here, or to the one at --url.",
    )
    relay.add_argument("--notebook", help="an open notebook, for the tools of its own kernel")
    relay.add_argument(
        "--url",
        default=os.environ.get("OH_URL"),
        help="address of a Jupyter server, or of oh_jupyter in it (default: $OH_URL, else the "
        "server that is running here)",
    )
    relay.add_argument(
        "--token", default=os.environ.get("OH_TOKEN"), help="its token (default: $OH_TOKEN)"
    )
    _add_connect(commands)
    return parser


def _add_connect(commands: Any) -> None:
    from oh_jupyter.connect.command import add_arguments

    add_arguments(
        commands.add_parser(
            "connect",
            help="let an agent's client use the notebook: claude, codex, gemini, ...",
            description="Write our MCP server into the configuration file of an agent's client.",
        )
    )


def _relay_mcp(notebook: str | None, url: str | None, token: str | None) -> int:
    from oh_jupyter.server.mcp.launcher import run
    from oh_jupyter.server.running import find_server, server_at

    return run(
        lambda: find_server(notebook) if url is None else server_at(url, token or "", notebook)
    )


def _install() -> int:
    from oh_jupyter.browser.executable import install_browser

    return install_browser()


def _print_environment(notebook: str | None) -> int:
    from oh_jupyter.server.running import find_server

    server = find_server(notebook)
    print(f"export OH_URL={shlex.quote(server.url)} OH_TOKEN={shlex.quote(server.token)}")
    return 0
