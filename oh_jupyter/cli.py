"""``oh-jupyter``: what is done from a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from oh_jupyter._version import __version__

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Words after the program's name; those of the process by default.

    Returns:
        Exit status: 0 if it worked.
    """
    parser = argparse.ArgumentParser(prog="oh-jupyter", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "install-browser",
        help="find a Chromium, Chrome or Edge, or install Chromium",
        description="Use a browser that is there; else install Playwright's Chromium; else "
        "say which package to install.",
    )
    parser.parse_args(arguments)
    from oh_jupyter.browser.executable import install_browser

    return install_browser()
