"""Installation of a browser, and of what the driver that controls it needs.

The browser is Playwright's download, else the system's package. The driver's Node.js comes with
Playwright; a minimal system lacks libraries of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile

from oh_jupyter.browser.executable import (
    EXECUTABLE_VARIABLE,
    MIN_NODE,
    NODE_VARIABLE,
    driver_failures,
    find_executable,
    find_node,
    printed_version,
)
from oh_jupyter.errors import BrowserDriverError, BrowserError, BrowserNotFoundError
from oh_jupyter.installed import find_program, python_command, python_environment

CONNECT_TIMEOUT_MS = 10_000
"""Connection timeout of each of Playwright's download hosts; its default is 30 s."""

INSTALLERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "apt-get": (
        ("apt-get", "-o", "Acquire::Retries=5", "update", "-qq"),
        ("apt-get", "-o", "Acquire::Retries=5", "install", "-qq", "--yes",
         "--no-install-recommends"),
    ),
    "dnf": (("dnf", "install", "--quiet", "--assumeyes"),),
    "apk": (("apk", "add", "--quiet"),),
}  # fmt: skip
"""Commands that install packages, by package manager; the packages follow the last one."""

DRIVER_PACKAGES = {
    "apt-get": ("libatomic1", "libstdc++6"),
    "dnf": ("libatomic", "libstdc++"),
    "apk": ("libatomic", "libstdc++"),
}
"""Packages of the libraries that Playwright's Node.js is linked with, besides the C library."""

INSTALL_BY_HAND = {
    "apt-get": "apt-get install chromium",
    "dnf": "dnf install chromium",
    "apk": "apk add chromium",
    "brew": "brew install --cask chromium",
    "winget": "winget install Google.Chrome",
}
"""Commands for a person to run, including the package managers of macOS and Windows."""

ANSI = re.compile(r"\x1b\[[0-9;]*m")
FAILURE = re.compile(r"\s*$|\s+at |Error: |Failed to install")


def install_browser() -> int:
    """Install a browser and its driver's libraries unless they are there; print the result.

    Tries Playwright's download first, then the system's package if this user may install it.

    Returns:
        Exit status of the command: 0 if a browser and its driver start.
    """
    # The driver also downloads the browser.
    has_driver = _provide_driver()
    return 0 if _provide_browser() and has_driver else 1


def _provide_driver() -> bool:
    """Install the libraries of the driver if it does not start; return whether it starts."""
    failures = driver_failures()
    if not failures:
        return True
    print(f"The browser's driver does not start: {failures}", flush=True)
    reason = _install_driver_libraries() or driver_failures()
    if not reason:
        print(f"Driver: {find_node()}")
        return True
    print(f"No driver: {reason}. {_driver_advice()}")
    return False


def _install_driver_libraries() -> str:
    """Install the libraries of Playwright's Node.js; return the reason of a failure, or ""."""
    manager = _package_manager()
    return _install(manager, *DRIVER_PACKAGES.get(manager, ()))


def _provide_browser() -> bool:
    """Install a browser if none starts; return whether one starts."""
    try:
        find_executable()
    except BrowserNotFoundError as error:
        if os.environ.get(EXECUTABLE_VARIABLE):
            print(error)
            return False
        reasons = []
    else:
        reason = _browser_failure()
        if not reason:
            print(f"Browser: {find_executable()}")
            return True
        reasons = [reason]
    # The system's package also installs the libraries that a download may lack.
    for install in (_download_with_playwright, _install_system_browser):
        reason = install() or _browser_failure()
        if not reason:
            print(f"Installed: {find_executable()}")
            return True
        reasons.append(reason)
    print(f"No browser: {'; '.join(dict.fromkeys(reasons))}. {_advice()}")
    return False


def _download_with_playwright() -> str:
    """Run Playwright's installation; return the reason of a failure, or ""."""
    print("No browser found; running: playwright install chromium", flush=True)
    command = python_command("playwright", "install", "chromium")
    environment = python_environment()
    environment.setdefault("PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT", str(CONNECT_TIMEOUT_MS))
    with contextlib.suppress(BrowserDriverError):  # else Playwright says what is missing
        environment[NODE_VARIABLE] = find_node()
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        printed = set()
        for line in process.stdout:
            # Playwright repeats the same lines for each host, and reports failures as stack traces.
            if line not in printed and not FAILURE.match(line):
                printed.add(line)
                print(f"  {ANSI.sub('', line).strip()}", flush=True)
        if process.wait() == 0:
            return ""
        errors.seek(0)
        reason = _first_error(errors.read()) or f"exit status {process.returncode}"
    return f"Playwright could not download Chromium ({reason})"


def _install_system_browser() -> str:
    """Install the system's Chromium; return the reason of a failure, or ""."""
    return _install(_package_manager(), "chromium")


def _package_manager() -> str:
    """Return the name of the system's package manager, or ""."""
    return next(filter(find_program, INSTALLERS), "")


def _shown(manager: str, *packages: str) -> str:
    """Return the command that installs packages, as a person types it."""
    return " ".join((manager, "add" if manager == "apk" else "install", *packages))


def _install(manager: str, *packages: str) -> str:
    """Install packages of the system; return the reason of a failure, or ""."""
    if not manager:
        return f"no supported package manager ({', '.join(INSTALLERS)})"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can install the system's package"
    *before, last = INSTALLERS[manager]
    shown = _shown(manager, *packages)
    print(f"Installing the system's package: {shown}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (*before, (*last, *packages)):
        program = find_program(command[0]) or command[0]
        result = subprocess.run(
            [program, *command[1:]],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if result.returncode:
            last_line = result.stdout.strip().rpartition("\n")[2] or f"exit {result.returncode}"
            return f"{shown} failed ({last_line})"
    return ""


def _browser_failure() -> str:
    """Return the reason why the browser does not start, or ""."""
    try:
        printed_version(find_executable())
    except BrowserNotFoundError:
        return "the installation succeeded, but there is still no browser"
    except BrowserError as error:
        return str(error)
    return ""


def _first_error(output: str) -> str:
    """Return the first error message in Playwright's output, without its stack trace."""
    match = re.search(r"^Error: (.+)$", ANSI.sub("", output), re.MULTILINE)
    return match[1].strip() if match else ""


def _advice() -> str:
    """Return advice for a person on how to install a browser."""
    commands = [text for name, text in INSTALL_BY_HAND.items() if find_program(name)]
    if not commands:
        return f"Install Chromium, or set {EXECUTABLE_VARIABLE} to an executable."
    return f"Run `{commands[0]}`, or set {EXECUTABLE_VARIABLE} to an executable."


def _driver_advice() -> str:
    """Return advice for a person on how to get a driver that starts."""
    manager = _package_manager()
    if not manager:
        return f"Install Node.js {MIN_NODE} or newer."
    command = _shown(manager, *DRIVER_PACKAGES[manager])
    return f"Run `{command}`, or install Node.js {MIN_NODE} or newer."
