"""Commands that set up this machine: ``install-browser``, ``env`` and ``doctor``."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from typing import Any

from oh_jupyter.errors import OhJupyterError


def add_setup(commands: Any) -> None:
    """Add the commands to a parser."""
    browser = commands.add_parser(
        "install-browser",
        help="find a Chromium, Chrome or Edge, or install Chromium",
        description="Use a browser that is installed; else download Playwright's Chromium; else "
        "install the system's package (root only); else say which one to install. Install the "
        "libraries that the browser's driver lacks, too (root only).",
    )
    browser.set_defaults(run=_install_browser)
    environment = commands.add_parser(
        "env",
        help="print OH_URL and OH_TOKEN of the running server",
        description='Print shell assignments for the running server: eval "$(oh-jupyter env)"',
    )
    environment.add_argument("--notebook", help="an open notebook, for its own kernel's address")
    environment.set_defaults(run=_print_environment)
    doctor = commands.add_parser(
        "doctor",
        help="report what does not work here, and how to fix it",
        description="Check packages, kernel, extensions, browser, agents, store and directories. "
        "The exit status is 1 if something is wrong.",
    )
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")
    doctor.set_defaults(run=_examine)


def _install_browser(options: argparse.Namespace) -> int:
    from oh_jupyter.browser.install import install_browser

    return install_browser()


def _print_environment(options: argparse.Namespace) -> int:
    from oh_jupyter.server.running import find_server

    try:
        server = find_server(options.notebook)
    except OhJupyterError:
        # The shell that evaluates this fails, too, instead of using another server.
        print("unset OH_URL OH_TOKEN; false")
        raise
    print(f"export OH_URL={shlex.quote(server.url)} OH_TOKEN={shlex.quote(server.token)}")
    return 0


def _examine(options: argparse.Namespace) -> int:
    """Print the checks of ``doctor``, and whether a server is running."""
    from oh_jupyter.config import read_settings
    from oh_jupyter.doctor import Check, examine
    from oh_jupyter.errors import ServerNotFoundError
    from oh_jupyter.server.running import find_server
    from oh_jupyter.trust import is_trusted

    checks = examine(*read_settings(is_trusted=is_trusted))
    try:
        checks.append(Check("running server", "ok", find_server().url))
    except ServerNotFoundError as error:
        checks.append(Check("running server", "missing", str(error)))
    except OhJupyterError as error:
        checks.append(Check("running server", "wrong", str(error)))
    if options.json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        print("\n".join(map(str, checks)))
    return int(any(check.status == "wrong" for check in checks))
