"""Node.js that runs Playwright's driver: the bundled one, else the one on the PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.browser.executable import install_command, printed_version
from oh_jupyter.errors import BrowserDriverError, BrowserError
from oh_jupyter.installed import find_program

NODE_VARIABLE = "PLAYWRIGHT_NODEJS_PATH"
"""Environment variable that names Playwright's Node.js."""

MIN_NODE = 20
"""Oldest Node.js that runs Playwright's driver."""


def find_node() -> str:
    """Find a Node.js that starts: the configured one, Playwright's, or that on the PATH."""
    node, failures = _search()
    if node:
        return node
    raise BrowserDriverError(
        "Playwright's driver, the Node.js program that controls the browser, does not start: "
        f"{failures}. The browser itself is not the cause. Run `{install_command()}` as root, or "
        f"install Node.js {MIN_NODE} or newer."
    )


def driver_failures() -> str:
    """Return the reasons why no driver starts, or ""."""
    return _search()[1]


def _search() -> tuple[str, str]:
    """Return the first Node.js that starts, or "" and the reasons why none does."""
    failures = []
    for program in _candidates():
        try:
            version = printed_version(program)
        except BrowserError as error:
            failures.append(str(error))
            continue
        major = version.removeprefix("v").partition(".")[0]
        if not major.isdigit() or int(major) >= MIN_NODE:
            return program, ""
        failures.append(f"{program} is Node.js {version}, older than {MIN_NODE}")
    return "", "; ".join(failures) or "there is no Node.js"


def _candidates() -> Iterator[str]:
    configured = os.environ.get(NODE_VARIABLE)
    if configured:
        yield configured
        return
    import playwright

    name = "node.exe" if sys.platform == "win32" else "node"
    bundled = Path(playwright.__file__).parent / "driver" / name
    # Some distributions package Playwright without a Node.js.
    if bundled.exists():
        yield str(bundled)
    on_path = find_program("node")
    if on_path:
        yield on_path
