"""The command ``sandbox``, which installs the sandboxed kernel."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_sandbox(commands: Any) -> None:
    """Add the command to a parser."""
    sandbox = commands.add_parser(
        "sandbox",
        help='install the kernel "Python 3 (sandboxed)"',
        description="Install a kernelspec whose kernels run in a sandbox as a whole.",
    )
    sandbox.add_argument("action", choices=["install"])
    sandbox.add_argument(
        "--network",
        choices=["none", "listed", "host"],
        help="network of the kernels: none, listed hosts, or the machine's (default: none, or "
        "listed with --host)",
    )
    sandbox.add_argument(
        "--host",
        action="append",
        default=[],
        dest="hosts",
        metavar="HOST",
        help="a host that they may reach, or a preset such as pypi; can be repeated",
    )
    sandbox.add_argument(
        "--sys-prefix", action="store_true", help="install into this environment, not for the user"
    )
    sandbox.set_defaults(run=_install_sandbox)


def _install_sandbox(options: argparse.Namespace) -> int:
    from oh_jupyter.boxed_kernel import DISPLAY_NAME, install_kernelspec, used_kernelspec
    from oh_jupyter.sandbox import find_engine

    network = options.network or ("listed" if options.hosts else "none")
    if options.hosts and network != "listed":
        print(f"--host has no effect with --network {network}; leave one of them out.")
        return 2
    prefix = sys.prefix if options.sys_prefix else None
    folder = install_kernelspec(network=network, hosts=options.hosts, prefix=prefix)
    print(f"Installed {DISPLAY_NAME} in {folder}")
    if (used := used_kernelspec()) != folder:
        print(f"Jupyter uses the older kernelspec in {used}; remove that one.")
        return 1
    engine = find_engine(None)
    if engine.program is None:
        print(f"Its kernels do not start yet: {engine.sentence}")
        return 1
    return 0
