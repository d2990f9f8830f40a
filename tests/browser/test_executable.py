"""Search for the browser, and the message without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.errors import BrowserNotFoundError


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "pw"))
    monkeypatch.delenv("OH_JUPYTER_BROWSER", raising=False)
    return tmp_path


def test_the_order(places: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(BrowserNotFoundError, match=r"Run `.*oh-jupyter install-browser`"):
        find_executable()
    shell = program(places / "bin/chromium-headless-shell")
    assert find_executable() == str(shell)
    system = program(places / "bin/google-chrome")
    assert find_executable() == str(system)
    own = program(places / "pw/chromium-1234/chrome-linux64/chrome")
    assert find_executable() == str(own)
    named = program(places / "named")
    monkeypatch.setenv("OH_JUPYTER_BROWSER", str(named))
    assert find_executable() == str(named)
    assert find_executable(system) == str(system)
    assert find_executable("google-chrome") == str(system)


def test_a_wrong_name_is_not_passed_over(places: Path, monkeypatch: pytest.MonkeyPatch):
    program(places / "bin/chromium")
    with pytest.raises(BrowserNotFoundError, match="executable_path names '/no/such'"):
        find_executable("/no/such")
    monkeypatch.setenv("OH_JUPYTER_BROWSER", "/no/such")
    with pytest.raises(BrowserNotFoundError, match="OH_JUPYTER_BROWSER names '/no/such'"):
        find_executable()


def test_an_empty_directory_of_playwright_is_no_browser(places: Path):
    (places / "pw/chromium-1234/chrome-linux").mkdir(parents=True)
    with pytest.raises(BrowserNotFoundError):
        find_executable()
