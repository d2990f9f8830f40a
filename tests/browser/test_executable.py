"""Where the browser is looked for, and what is said when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from oh_jupyter.browser import executable
from oh_jupyter.browser.executable import find_executable, install_browser
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
    with pytest.raises(BrowserNotFoundError, match="Run `oh-jupyter install-browser`"):
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


def test_install_with_a_browser_here(places: Path, capsys: pytest.CaptureFixture[str]):
    found = program(places / "bin/chromium")
    assert install_browser() == 0
    assert capsys.readouterr().out == f"A browser is here already: {found}\n"


@pytest.mark.parametrize("works", [True, False])
def test_install_runs_playwright(
    places: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    works: bool,
):
    # Stands in for the interpreter that runs `-m playwright install chromium`.
    fake = program(places / "python")
    made = places / "pw/chromium-1/chrome-linux/chrome"
    body = (
        f"/bin/mkdir -p {made.parent}; echo > {made}; /bin/chmod +x {made}" if works else "exit 7"
    )
    fake.write_text(f'#!/bin/sh\n[ "$*" = "-m playwright install chromium" ] || exit 9\n{body}\n')
    monkeypatch.setattr(executable.sys, "executable", str(fake))
    assert install_browser() == (0 if works else 1)
    out = capsys.readouterr().out
    assert (f"Installed: {made}" in out) is works
    assert ("exit status 7" in out and "apt-get install chromium" in out) is not works
