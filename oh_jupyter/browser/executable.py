"""The browser's executable and a try of it, and the Node.js that runs Playwright's driver.

Node.js is the bundled one, else the one on the PATH.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.errors import BrowserDriverError, BrowserError, BrowserNotFoundError
from oh_jupyter.installed import find_program, python_environment

EXECUTABLE_VARIABLE = "OH_JUPYTER_BROWSER"
"""Environment variable that names the browser's executable."""

VERSION_SECONDS = 20.0
"""Timeout of a program that prints its version."""

EXECUTABLE_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
    "chromium-headless-shell",
)
MAC_PATHS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
WINDOWS_PATHS = (
    r"Google\Chrome\Application\chrome.exe",
    r"Chromium\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
)
WINDOWS_ROOTS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")


def find_executable(explicit: str | os.PathLike[str] | None = None) -> str:
    """Find Chromium, Chrome or Edge: the configured one, Playwright's, or the system's."""
    from_variable = os.environ.get(EXECUTABLE_VARIABLE)
    for value, origin in ((explicit, "executable_path"), (from_variable, EXECUTABLE_VARIABLE)):
        if value:
            executable = find_program(os.fspath(value))
            if executable is None:
                raise BrowserNotFoundError(
                    f"{origin} names {os.fspath(value)!r}, which is not an executable file. "
                    "Correct it, or omit it to search for a browser."
                )
            return os.path.abspath(executable)
    for candidate in (_playwright_browser(), *_system_browsers()):
        if candidate is not None and os.access(candidate, os.X_OK):
            return os.path.abspath(candidate)
    raise BrowserNotFoundError(
        f"No Chromium, Chrome or Edge is installed. Run `{install_command()}`, or set the "
        f"environment variable {EXECUTABLE_VARIABLE} to an executable."
    )


def printed_version(program: str) -> str:
    """Return the version that a program prints; raise BrowserError if it does not start."""
    try:
        result = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=python_environment(),  # it may be a script of an installed package
            timeout=VERSION_SECONDS,
        )
    except OSError as error:
        raise BrowserError(f"{program} does not start ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise BrowserError(
            f"{program} did not print its version within {VERSION_SECONDS:g} s"
        ) from None
    if result.returncode:
        last_line = result.stderr.strip().rpartition("\n")[2]
        reason = last_line.removeprefix(f"{program}: ") or f"exit status {result.returncode}"
        raise BrowserError(f"{program} does not start ({reason})")
    return result.stdout.strip()


def install_command() -> str:
    """Return the command that installs a browser from a terminal of this environment."""
    program = "oh-jupyter"
    if find_program(program) is None:
        beside = Path(sys.executable).with_name(program)
        program = str(beside) if beside.exists() else f"{sys.executable} -m oh_jupyter.cli"
    return f"{program} install-browser"


def _playwright_browser() -> Path | None:
    """Find the newest Chromium that Playwright downloaded."""
    # Playwright reports the path only after its driver has started.
    browsers_path = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if browsers_path and browsers_path != "0":
        root = Path(browsers_path)
    elif sys.platform == "darwin":
        root = Path.home() / "Library/Caches/ms-playwright"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", "")) / "ms-playwright"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"
    patterns = (
        "chromium-*/chrome-linux*/chrome",
        "chromium-*/chrome-mac*/*.app/Contents/MacOS/*",
        "chromium-*/chrome-win*/chrome.exe",
        "chromium_headless_shell-*/*/*headless*shell*",
    )
    for pattern in patterns:
        files = [path for path in root.glob(pattern) if path.is_file()]
        if files:
            return max(files, key=lambda path: path.stat().st_mtime)
    return None


def _system_browsers() -> Iterator[Path]:
    for name in EXECUTABLE_NAMES:
        executable = find_program(name)
        if executable:
            yield Path(executable)
    if sys.platform == "darwin":
        yield from map(Path, MAC_PATHS)
    if sys.platform == "win32":
        for root in filter(None, map(os.environ.get, WINDOWS_ROOTS)):
            yield from (Path(root) / path for path in WINDOWS_PATHS)


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
