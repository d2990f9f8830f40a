"""`oh-jupyter install-browser` on machines with and without network, packages and rights.

The programs that would download or install stand in for the real ones: a test may not change the
machine that it runs on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from oh_jupyter.browser.executable import NODE_VARIABLE, find_node
from oh_jupyter.browser.install import install_browser
from oh_jupyter.errors import BrowserDriverError

NODE_FAILS = """
echo "$0: error while loading shared libraries: libatomic.so.1: cannot open shared object file" >&2
exit 127
"""
PLAYWRIGHT_FAILS = """
for i in 1 2 3 4; do
  echo "Downloading Chromium from https://example.org"
  echo "Error: getaddrinfo ENOTFOUND example.org" >&2
  echo "    at GetAddrInfoReqWrap.onlookupall (node:internal/dns/promises:101:17) {" >&2
done
echo "Failed to install browsers"
echo "    at ChildProcess.emit (node:events:514:20)"
exit 1
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any program but those that the test adds."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "pw"))
    monkeypatch.delenv("OH_JUPYTER_BROWSER", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv(NODE_VARIABLE, str(program(tmp_path / "node", "echo v24.1.0")))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def program(path: Path, body: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def creates(path: Path) -> str:
    return (
        f"/bin/mkdir -p {path.parent}; echo '#!/bin/sh' > {path}; /bin/chmod +x {path}; "
        f"echo $* >> {path.parent}/calls"
    )


def test_an_installed_browser_is_used(machine: Path, capsys: pytest.CaptureFixture[str]):
    chromium = program(machine / "bin/chromium")
    assert install_browser() == 0
    assert capsys.readouterr().out == f"Browser: {chromium}\n"


def test_a_download_of_playwright(machine: Path, capsys: pytest.CaptureFixture[str]):
    chromium = machine / "pw/chromium-1/chrome-linux/chrome"
    program(
        machine / "python",
        f'case "$*" in *" playwright install chromium") {creates(chromium)};; *) exit 9;; esac',
    )
    assert install_browser() == 0
    assert f"Installed: {chromium}" in capsys.readouterr().out


def test_the_systems_package_where_the_download_fails(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    program(machine / "python", PLAYWRIGHT_FAILS)
    chromium = machine / "bin/chromium"
    program(machine / "bin/apt-get", f'case "$*" in *install*) {creates(chromium)};; esac')
    assert install_browser() == 0
    out = capsys.readouterr().out
    assert f"Installed: {chromium}" in out
    assert "Installing the system's package: apt-get install chromium" in out
    assert out.count("Downloading") == 1
    assert "  at " not in out
    assert "Failed to install" not in out
    assert "install -qq --yes" in (machine / "bin/calls").read_text()


def test_a_download_that_lacks_libraries_gets_them_from_the_systems_package(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    chromium = machine / "pw/chromium-1/chrome-linux/chrome"
    broken = "echo libnss3.so: cannot open shared object file >&2; exit 127"
    program(machine / "python", f"{creates(chromium)}; echo '{broken}' >> {chromium}")
    program(machine / "bin/apt-get", creates(chromium))
    assert install_browser() == 0
    assert f"Installed: {chromium}" in capsys.readouterr().out


@pytest.mark.parametrize("user", [0, 1000])
def test_no_way_to_a_browser_is_one_line(
    machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    user: int,
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    program(machine / "python", PLAYWRIGHT_FAILS)
    program(machine / "bin/apt-get", "echo Reading; echo E: Unable to locate chromium; exit 100")
    assert install_browser() == 1
    last = capsys.readouterr().out.strip().rpartition("\n")[2]
    assert last.startswith(
        "No browser: Playwright could not download Chromium (getaddrinfo ENOTFOUND example.org); "
    )
    assert ("E: Unable to locate chromium" in last) is (user == 0)
    assert ("only root" in last) is (user != 0)
    assert last.endswith(
        "Run `apt-get install chromium`, or set OH_JUPYTER_BROWSER to an executable."
    )


def test_a_wrong_executable_is_reported_and_nothing_installed(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OH_JUPYTER_BROWSER", "/no/such")
    program(machine / "python", creates(machine / "called"))
    assert install_browser() == 1
    assert "OH_JUPYTER_BROWSER names '/no/such'" in capsys.readouterr().out
    assert not (machine / "called").exists()


def test_a_browser_that_lacks_libraries_is_not_used(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    program(machine / "bin/google-chrome", "echo libnss3.so: cannot open it >&2; exit 127")
    program(machine / "python", PLAYWRIGHT_FAILS)
    program(machine / "bin/apt-get", creates(machine / "bin/chromium"))
    assert install_browser() == 0
    assert f"Installed: {machine / 'bin/chromium'}" in capsys.readouterr().out


def test_libraries_of_the_driver_are_installed(machine: Path, capsys: pytest.CaptureFixture[str]):
    program(machine / "bin/chromium")
    node = program(machine / "node", NODE_FAILS)
    install = f"/bin/sed -i 's/.*error.*/echo v24.1.0; exit 0/' {node}"
    program(machine / "bin/apt-get", f'case "$*" in *"install"*libatomic1*) {install};; esac')
    assert install_browser() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"The browser's driver does not start: {node} does not start (error")
    assert lines[0].endswith("libatomic.so.1: cannot open shared object file)")
    assert lines[1:] == [
        "Installing the system's package: apt-get install libatomic1 libstdc++6",
        f"Driver: {node}",
        f"Browser: {machine / 'bin/chromium'}",
    ]


def test_a_driver_without_libraries_is_the_part_that_fails(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program(machine / "bin/chromium")
    node = program(machine / "node", NODE_FAILS)
    program(machine / "bin/apt-get")
    assert install_browser() == 1
    _, driver, browser = capsys.readouterr().out.splitlines()
    assert driver == (
        "No driver: only root can install the system's package. Run `apt-get install libatomic1 "
        "libstdc++6`, or install Node.js 20 or newer."
    )
    assert browser == f"Browser: {machine / 'bin/chromium'}"
    with pytest.raises(BrowserDriverError, match=f"{node} does not start .*libatomic") as caught:
        find_node()
    assert "The browser itself is not the cause" in str(caught.value)


@pytest.mark.parametrize(("version", "is_used"), [("v20.0.0", True), ("v18.20.1", False)])
def test_a_node_on_the_path_runs_the_driver(
    machine: Path, monkeypatch: pytest.MonkeyPatch, version: str, is_used: bool
):
    monkeypatch.delenv(NODE_VARIABLE)
    package = program(machine / "playwright/__init__.py")
    monkeypatch.setattr("playwright.__file__", str(package))
    program(machine / "playwright/driver/node", NODE_FAILS)
    node = program(machine / "bin/node", f"echo {version}")
    if is_used:
        assert find_node() == str(node)
    else:
        with pytest.raises(BrowserDriverError, match=f"is Node.js {version}, older than 20"):
            find_node()
