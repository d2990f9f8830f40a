"""Installation of a browser: Playwright's download, else the system's package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile

from oh_jupyter.browser.executable import EXECUTABLE_VARIABLE, find_executable
from oh_jupyter.errors import BrowserNotFoundError

CONNECT_TIMEOUT_MS = 10_000
"""Connection timeout of each of Playwright's download hosts; its default is 30 s."""

SYSTEM_PACKAGES: dict[str, tuple[tuple[str, ...], ...]] = {
    "apt-get": (
        ("apt-get", "-o", "Acquire::Retries=5", "update", "-qq"),
        ("apt-get", "-o", "Acquire::Retries=5", "install", "-qq", "--yes",
         "--no-install-recommends", "chromium"),
    ),
    "dnf": (("dnf", "install", "--quiet", "--assumeyes", "chromium"),),
    "apk": (("apk", "add", "--quiet", "chromium"),),
}  # fmt: skip
"""Commands that install Chromium, by package manager."""

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
    """Install a browser unless there is one, and print the result.

    Tries Playwright's download first, then the system's package if this user may install it.

    Returns:
        Exit status of the command: 0 if a browser is installed.
    """
    try:
        print(f"Browser: {find_executable()}")
        return 0
    except BrowserNotFoundError as error:
        if os.environ.get(EXECUTABLE_VARIABLE):
            print(error)
            return 1
    reasons = []
    # The system's package also installs the libraries that a download may lack.
    for install in (_download_with_playwright, _install_system_package):
        reason = install() or _start_failure()
        if not reason:
            print(f"Installed: {find_executable()}")
            return 0
        reasons.append(reason)
    print(f"No browser: {'; '.join(reasons)}. {_advice()}")
    return 1


def _download_with_playwright() -> str:
    """Run Playwright's installation; return the reason of a failure, or ""."""
    print("No browser found; running: playwright install chromium", flush=True)
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    timeout = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": str(CONNECT_TIMEOUT_MS)}
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command,
            env=timeout | os.environ,
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


def _install_system_package() -> str:
    """Install the system's Chromium; return the reason of a failure, or ""."""
    manager = next(filter(shutil.which, SYSTEM_PACKAGES), None)
    if manager is None:
        return "no supported package manager (apt-get, dnf, apk)"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can install the system's package"
    print(f"Installing the system's package instead: {INSTALL_BY_HAND[manager]}", flush=True)
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in SYSTEM_PACKAGES[manager]:
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if result.returncode:
            last_line = result.stdout.strip().rpartition("\n")[2] or f"exit {result.returncode}"
            return f"{INSTALL_BY_HAND[manager]} failed ({last_line})"
    return ""


def _start_failure() -> str:
    """Return the reason why the installed browser does not start, or ""."""
    try:
        executable = find_executable()
    except BrowserNotFoundError:
        return "the installation succeeded, but there is still no browser"
    result = subprocess.run(
        [executable, "--version"], capture_output=True, text=True, errors="replace"
    )
    if result.returncode == 0:
        return ""
    last_line = result.stderr.strip().rpartition("\n")[2]
    return f"{executable} does not start ({last_line or f'exit status {result.returncode}'})"


def _first_error(output: str) -> str:
    """Return the first error message in Playwright's output, without its stack trace."""
    match = re.search(r"^Error: (.+)$", ANSI.sub("", output), re.MULTILINE)
    return match[1].strip() if match else ""


def _advice() -> str:
    """Return advice for a person on how to install a browser."""
    commands = [text for name, text in INSTALL_BY_HAND.items() if shutil.which(name)]
    if not commands:
        return f"Install Chromium, or set {EXECUTABLE_VARIABLE} to an executable."
    return f"Run `{commands[0]}`, or set {EXECUTABLE_VARIABLE} to an executable."
