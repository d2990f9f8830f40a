"""Setup of all tests; it keeps their files out of the user's home."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from jupyter_client.connect import LocalPortCache

from oh_jupyter.browser.executable import NODE_VARIABLE, find_executable, find_node, install_command
from oh_jupyter.errors import BrowserError
from oh_jupyter.skills import catalog

pytest_plugins = ["pytest_jupyter.jupyter_server", "oh_jupyter.testing"]


BUSY_FOLDERS = ("e2e", "browser")
"""Of tests whose browsers keep a processor busy; those of the others wait half of the time."""
FOLDERS_WITH_LONG_FILES = (
    *("server", "agents", "client", "kernel", "shell"),
    *("checkpoints", "editor", "storage", "evaluation"),
)

FIRST_KERNEL_PORT = 10_000  # below the ports that Linux and macOS give to connections
PORTS_OF_A_WORKER = 2_000

NEEDS_BROWSER = "needs a Chromium, Chrome or Edge, and its driver"
NEEDS_INDEX = "the package index cannot be reached"

# What a run finds, the next one finds, too; "--hypothesis-profile default" looks elsewhere.
# A busy machine is no failure.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")


def pytest_configure() -> None:
    # A script's shell starts what it puts in the background with interrupts ignored, and so would
    # be the tests' own and those of their child processes.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let busy files take turns with others, and each begin with the long ones.

    So the processors of several workers are used all the time, and all end at about the same time.
    """
    _skip_without_a_browser(items)
    order = [*BUSY_FOLDERS, *FOLDERS_WITH_LONG_FILES]
    rank = {name: position for position, name in enumerate(order)}
    files = sorted(
        dict.fromkeys(item.path for item in items),
        key=lambda path: rank.get(path.parent.name, len(order)),
    )
    busy = [path for path in files if path.parent.name in BUSY_FOLDERS]
    others = [path for path in files if path.parent.name not in BUSY_FOLDERS]
    turn = {path: n / len(group) for group in (busy, others) for n, path in enumerate(group)}
    items.sort(key=lambda item: (turn[item.path], item.path))


def _skip_without_a_browser(items: list[pytest.Item]) -> None:
    """Skip the tests that need a browser where there is none."""
    try:
        find_executable()
        os.environ[NODE_VARIABLE] = find_node()  # for tests that use Playwright themselves
    except BrowserError:
        for item in items:
            if item.get_closest_marker("browser") or item.path.parent.name == "e2e":
                item.add_marker(pytest.mark.skip(reason=NEEDS_BROWSER))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests were skipped for want of a browser or of a package index."""
    reports = terminalreporter.stats.get("skipped", [])
    without_index = sum(NEEDS_INDEX in str(report.longrepr) for report in reports)
    if without_index:
        terminalreporter.write_line(f"Not run: {without_index} tests, because {NEEDS_INDEX}")
    skipped = sum(NEEDS_BROWSER in str(report.longrepr) for report in reports)
    if skipped:
        terminalreporter.write_line(
            f"Not run: {skipped} tests that need a browser; to get one: {install_command()}"
        )


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of all further collections, of which each would see it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """pytest-jupyter sets up a loop around each test; only those of the server need it."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """See above."""


@pytest.fixture(scope="session", autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Stores, histories and settings of the tests, for their child processes too."""
    root = tmp_path_factory.mktemp("places")
    places = {
        "FILE_STORE": "local",
        "FILE_STORE_PATH": str(root / "store"),
        "XDG_STATE_HOME": str(root / "state"),
        "IPYTHONDIR": str(root / "ipython"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "OH_JUPYTER_AGENT_REGISTRY": "",  # on the internet
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        # Those of a new machine, whatever this one has.
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    before = {name: os.environ.get(name) for name in places}
    os.environ.update(places)
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(scope="session", autouse=True)
def worker_ports() -> Iterator[None]:
    """Give the kernels of each pytest worker ports from a range of its own.

    jupyter_client chooses ports that other processes may take before the kernel does, and
    ipykernel hangs for ever if it cannot bind the one of its outputs.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    first = FIRST_KERNEL_PORT + worker % 10 * PORTS_OF_A_WORKER
    ports = itertools.cycle(range(first, first + PORTS_OF_A_WORKER))
    for _ in range(os.getpid() % PORTS_OF_A_WORKER):  # away from those of another run
        next(ports)

    def find_available_port(cache: LocalPortCache, ip: str) -> int:
        return next(port for port in ports if _is_free(ip, port))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPortCache, "find_available_port", find_available_port)
        yield


def _is_free(ip: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((ip, port))
        except OSError:
            return False
    return True


@pytest.fixture
def forget_registered_skills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_registered", {})
    monkeypatch.setattr(catalog, "_removed", set())


@pytest.fixture
def mount_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Mount a file system of so many megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(megabytes: int) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        try:
            mounted = subprocess.run(command, capture_output=True).returncode == 0
        except OSError:
            mounted = False
        if not mounted:
            pytest.skip("no file system can be mounted here")
        return folder

    yield mount
    if folder.is_mount():
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def fresh_python(tmp_path: Path) -> str:
    """Python of a fresh environment with pip, from which a package index can be reached."""
    python = str(tmp_path / "fresh" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "fresh"], check=True)
    asked = [python, "-m", "pip", "download", "--quiet", "--no-deps", "jupyter-ai"]
    done = subprocess.run([*asked, "--dest", tmp_path], capture_output=True, text=True, timeout=200)
    if done.returncode:
        pytest.skip(f"{NEEDS_INDEX}: {done.stderr.strip().splitlines()[-1]}")
    return python
