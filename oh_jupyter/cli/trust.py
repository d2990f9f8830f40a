"""The command ``trust``, for the settings of a folder."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_trust(commands: Any) -> None:
    """Add the command to a parser."""
    trust = commands.add_parser(
        "trust",
        help="trust the config.toml of a folder",
        description="Show the settings of a folder's config.toml that can loosen what limits "
        "agents, and let them hold. Any change of the file ends the trust.",
    )
    trust.add_argument("folder", nargs="?", default=".", help="the folder (default: this one)")
    trust.add_argument("--show", action="store_true", help="only show the settings")
    trust.add_argument("--forget", action="store_true", help="end your trust in the file")
    trust.set_defaults(run=_trust)


def _trust(options: argparse.Namespace) -> int:
    from oh_jupyter.config import (
        faults_of,
        folder_settings,
        shown_settings,
    )
    from oh_jupyter.trust import distrust, is_trusted, trust

    file, values = folder_settings(options.folder, is_trusted=is_trusted)
    for fault in faults_of(file):
        print(f"oh-jupyter: {fault}", file=sys.stderr)
    if options.forget:
        removed = distrust(file.path)
        print(f"{file.path} is no longer trusted." if removed else f"{file.path} was not trusted.")
        return 0
    for name, value in shown_settings(values):
        print(f"    {name} = {value}")
    if options.show:
        return 0
    trust(file)
    print(f"{file.path} is trusted. Kernels that start now use its settings.")
    return 0
