"""Whatever of the browser ends is an observation, and the next step works."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from oh_jupyter.browser import BrowserEnv, supervisor
from oh_jupyter.browser.channel.tempdir import TempDir
from oh_jupyter.browser.worker.session import MAX_TABS
from oh_jupyter.errors import (
    BrowserDriverError,
    BrowserError,
    BrowserNotFoundError,
    BrowserTimeoutError,
)
from oh_jupyter.testing import descendants, suspended, wait_until

pytestmark = pytest.mark.browser

SLOW = pytest.mark.slow
"""Of what is like another one that is not."""


@pytest.fixture
def env() -> Iterator[BrowserEnv]:
    with BrowserEnv() as env:
        yield env


def browser_process() -> psutil.Process:
    return descendants(PARTS_OF_THE_CHAIN["browser"])[-1]


def worker_process() -> psutil.Process:
    (worker,) = descendants(PARTS_OF_THE_CHAIN["worker"])
    return worker


@pytest.mark.thorough
def test_windows_without_end(env: BrowserEnv, site):
    many = "for (let i = 0; i < 22; i++) window.open('/fine')"
    site.put("/fine", "<p>fine")
    page = site.put("/many", f'<button onclick="{many}">b</button>')
    # What has been observed says when it opens windows, so that they are waited for.
    env.step(f'goto("{page}")')
    seen = env.step("mouse_click(20, 15)")
    assert "at most 20 tabs stay open" in " ".join(seen["notices"])
    assert len(seen["open_pages_urls"]) <= MAX_TABS
    seen = env.step("new_tab()")
    assert "tabs are open already. Close one with tab_close()" in seen["last_action_error"]
    seen = env.step("tab_close() new_tab()")
    assert seen["last_action_error"] == ""


PARTS_OF_THE_CHAIN = {
    "guardian": lambda p: p.cmdline()[-1:] == [str(p.ppid())],
    "worker": lambda p: p.cmdline()[-1:] == ["oh_jupyter.browser.worker.main"],
    "driver": lambda p: p.cmdline()[-1:] == ["run-driver"],
    "browser": lambda p: (
        "--remote-debugging-pipe" in p.cmdline() and "--type=" not in " ".join(p.cmdline())
    ),
    "zygote": lambda p: "--type=zygote" in p.cmdline(),
    "renderer": lambda p: "--type=renderer" in p.cmdline(),
    "network": lambda p: "network.mojom.NetworkService" in " ".join(p.cmdline()),
    "storage": lambda p: "storage.mojom.StorageService" in " ".join(p.cmdline()),
    "gpu": lambda p: "--type=gpu-process" in p.cmdline(),
}


def killed(part: str) -> bool:
    """Kill the processes of that part of the chain, if there are any."""
    victims = descendants(PARTS_OF_THE_CHAIN[part])
    for process in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: all(map(is_dead, victims)))
    return bool(victims)


def is_dead(process: psutil.Process) -> bool:
    """Whether a process has ended, even if its parent has not yet reaped it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def each_part(parts: Iterable[str], *, fast: set[str]) -> Any:
    """Each way to die."""
    return pytest.mark.parametrize(
        "part", [part if part in fast else pytest.param(part, marks=SLOW) for part in parts]
    )


@pytest.mark.thorough
@each_part(PARTS_OF_THE_CHAIN, fast={"worker", "browser"})
def test_each_part_of_the_chain_is_killed_in_turn(env: BrowserEnv, site, part: str):
    page = site.put("/fine", "<p>fine")
    other = site.put("/other", "<p>other")
    env.step(f'goto("{page}")')
    assert env.check_alive()
    assert killed(part) or part == "storage"
    is_end = part in ("guardian", "worker", "driver", "browser", "zygote")
    if is_end:
        wait_until(lambda: not env.check_alive(5))
    seen = env.step(f'goto("{other}")')
    lost = "cookies, open pages, history and form input are lost"
    assert any(lost in notice for notice in seen["notices"]) == is_end
    assert env.check_alive()
    # The browser may notice the death in the middle of the action, which is not repeated then.
    if part == "renderer":
        assert "other" in seen["text_content"] or "lost" in seen["last_action_error"]
        seen = env.step(f'goto("{other}")')
    elif part == "network" and seen["last_action_error"]:
        assert "the request was cut off" in seen["last_action_error"]
        seen = env.step(f'goto("{other}")')
    assert "other" in seen["text_content"]
    assert seen["last_action_error"] == ""


@pytest.mark.thorough
@each_part(["worker", "driver", "browser"], fast={"driver"})
def test_each_part_of_the_chain_is_killed_during_a_step(env: BrowserEnv, site, part: str):
    env.start()
    site.when_asked_for_more("/never", lambda: killed(part))
    action = f'goto("{site.url("/never")}")'
    seen = env.step(action, timeout=700)
    assert seen["last_action"] == action
    assert "exited unexpectedly" in seen["last_action_error"]
    assert "not repeated" in seen["last_action_error"]
    assert env.step("noop(0)")["last_action_error"] == ""


@pytest.mark.thorough
def test_lost_state_is_reported_correctly(site, tmp_path: Path):
    page = site.put("/fine", "<p>fine")
    profile = tmp_path / "profile"
    with BrowserEnv(user_data_dir=profile) as env:
        env.step(f'goto("{page}")', include=[])
        env.evaluate("document.cookie = 'kept=1; max-age=99999'")
        env.evaluate("localStorage.kept = 2")
        state = env.storage_state()
    for settings, notice in (
        ({"user_data_dir": profile}, "the profile keeps cookies and local storage"),
        ({"storage_state": state}, "cookies and local storage are reset to the storage state"),
    ):
        with BrowserEnv(**settings) as env:
            env.step(f'goto("{page}")', include=[])
            browser_process().kill()
            wait_until(lambda env=env: not env.check_alive(5))
            seen = env.step(f'goto("{page}")')
            assert notice in seen["notices"][0]
            assert "lost; " in seen["notices"][0]
            assert env.evaluate("document.cookie + localStorage.kept") == "kept=12"


@SLOW
def test_a_task_continues_after_a_crash(site):
    with BrowserEnv("oh_jupyter/click-button", seed=4) as env:
        before = env.step("noop(0)")
        worker_process().kill()
        wait_until(lambda: not env.check_alive(5))
        seen = env.step("noop(0)")
        assert "cookies, open pages" in seen["notices"][0]
        assert seen["text_content"] == before["text_content"]
        site.when_asked_for_more("/never", worker_process().kill)
        seen = env.step(f'goto("{site.url("/never")}")', timeout=700)
        assert "not repeated" in seen["last_action_error"]
        assert seen["text_content"] == before["text_content"]
        assert seen["goal"] == before["goal"]
        assert env.step("GET_EVAL_REWARDS")["text_content"] == "[0.0, 0.0, 0.0]"


@pytest.mark.thorough
def test_a_stopped_worker_is_replaced(env: BrowserEnv, site):
    page = site.put("/fine", "<p>fine")
    env.start()
    process = worker_process()
    with suspended(process):
        with pytest.raises(BrowserTimeoutError):
            env.step("noop(0)", timeout=0.5)
        assert not env.check_alive(0.5)
        seen = env.step(f'goto("{page}")')
    assert "fine" in seen["text_content"]
    assert "was restarted" in seen["notices"][0]
    assert not process.is_running()


def test_close_ends_a_waiting_step_and_all_processes(site):
    others = set(psutil.Process().children(recursive=True))
    env = BrowserEnv()
    env.start()
    mine = set(psutil.Process().children(recursive=True)) - others
    site.when_asked_for_more("/never", env.close)
    with pytest.raises(BrowserError, match="closed"):
        env.step(f'goto("{site.url("/never")}")', timeout=700)
    env.close()
    _, alive = psutil.wait_procs(list(mine), timeout=30)
    assert not alive
    with pytest.raises(BrowserError, match="closed"):
        env.step("noop(0)")
    env.close()


@pytest.mark.thorough
def test_interrupt_ends_the_step_and_not_the_browser(env: BrowserEnv, site):
    page = site.put("/fine", "<p>fine")
    env.step(f'goto("{page}")')
    browser = browser_process()
    site.when_asked_for_more("/never", lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        env.step(f'goto("{site.url("/never")}")', timeout=700)
    seen = env.step("noop(0)")
    assert "fine" in seen["text_content"]
    assert browser.is_running()


@pytest.mark.thorough
@pytest.mark.parametrize("bytes_written", [None, 2], ids=["whole", "torn"])
def test_an_interrupt_while_a_request_is_written(
    env: BrowserEnv, site, monkeypatch: pytest.MonkeyPatch, bytes_written: int | None
) -> None:
    env.step(f'goto("{site.put("/fine", "<p>fine")}")')

    if bytes_written is not None:
        monkeypatch.setattr(supervisor, "PING_TIMEOUT_SECONDS", 0.1)
    interrupting = pytest.MonkeyPatch()

    def write_and_interrupt(descriptor: int, message: dict[str, Any]) -> None:
        interrupting.undo()
        if bytes_written is None:
            supervisor.write_frame(descriptor, message)
        else:
            os.write(descriptor, b"\0" * bytes_written)
        raise KeyboardInterrupt

    interrupting.setattr(supervisor, "write_frame", write_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        env.step("noop(0)")
    if bytes_written is None:
        assert "fine" in env.step("noop(0)")["text_content"]
    else:
        assert "was restarted" in env.step("noop(0)")["notices"][0]


@pytest.mark.thorough
def test_a_step_is_aborted_from_another_thread(env: BrowserEnv, site):
    page = site.put("/fine", "<p>fine")
    env.step(f'goto("{page}")')
    browser = browser_process()
    site.when_asked_for_more("/never", env.interrupt)
    with pytest.raises(BrowserError, match=r"^The step was cancelled\.$"):
        env.step(f'goto("{site.url("/never")}")', timeout=700)
    assert "fine" in env.step("noop(0)")["text_content"]
    assert browser.is_running()


def leftovers() -> set[str]:
    patterns = ("oh_browser_*", "playwright*", "org.chromium.*", ".org.chromium.*", "oh_jupyter_*")
    root = Path(tempfile.gettempdir())
    return {path.name for pattern in patterns for path in root.glob(pattern)}


@pytest.fixture
def own_temporary_folder(monkeypatch):
    """Other browsers that run on this machine leave nothing in it."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.setenv("TMPDIR", folder)
        yield


@pytest.mark.thorough
def test_a_long_name_of_the_folder_for_temporary_files_does_no_harm(tmp_path, monkeypatch):
    folder = tmp_path / ("long-" * 20)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    with BrowserEnv() as env:
        assert env.step("noop(0)")["url"] == "about:blank"


@pytest.mark.thorough
@pytest.mark.usefixtures("own_temporary_folder")
@pytest.mark.parametrize(
    "victim",
    [
        worker_process,
        pytest.param(browser_process, marks=SLOW),
        pytest.param(None, marks=SLOW, id="nobody"),
    ],
)
def test_nothing_is_left_in_the_folder_for_temporary_files(site, victim):
    before = leftovers()
    page = site.put("/get", b"data", Content_Disposition="attachment; filename=data.bin")
    with BrowserEnv() as env:
        seen = env.step(f'goto("{page}")')
        assert Path(seen["downloads"][0]["path"]).read_bytes() == b"data"
        new = leftovers() - before
        assert len(new) == 1
        if victim is not None:
            victim().kill()
            wait_until(lambda: not env.check_alive(5))
            env.step("noop(0)")
            assert leftovers() - before == new
            assert Path(seen["downloads"][0]["path"]).exists()
    assert not leftovers() - before


PARENT = """
import sys
from oh_jupyter.browser import BrowserEnv, supervisor
env = BrowserEnv()
env.step("noop(0)")
print("ready", flush=True)
if sys.argv[1] == "wait":
    sys.stdin.read()
"""


@pytest.mark.thorough
@pytest.mark.usefixtures("own_temporary_folder")
@pytest.mark.parametrize("end", ["kill", pytest.param("exit", marks=SLOW)])
def test_nothing_outlives_the_parent(end: str):
    before = leftovers()
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PARENT, "wait" if end == "kill" else "exit"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        if end == "kill":
            assert parent.stdout.readline() == b"ready\n"
            family = psutil.Process(parent.pid).children(recursive=True)
            assert len(family) > 3
            parent.kill()
            _, alive = psutil.wait_procs(family, timeout=60)
            assert not alive
        else:
            assert parent.stdout.read() == b"ready\n"
            assert parent.wait(60) == 0
    wait_until(lambda: not leftovers() - before)


@pytest.mark.usefixtures("own_temporary_folder")
def test_folders_of_killed_owners_are_removed_by_the_next_browser():
    root = Path(tempfile.gettempdir())
    abandoned, fresh = root / "oh_browser_1", root / "oh_browser_2"
    for folder in (abandoned, fresh):
        (folder / "tmp").mkdir(parents=True)
    (abandoned / "owner.lock").touch()
    owned = TempDir()
    TempDir().close()
    assert not abandoned.exists()
    assert fresh.exists()
    assert owned.path.exists()
    owned.close()
    assert not owned.path.exists()


@pytest.mark.usefixtures("own_temporary_folder")
def test_a_folder_that_two_threads_close_is_closed_once(monkeypatch):
    owned = TempDir()
    remove = shutil.rmtree
    other = threading.Thread(target=owned.close)

    def remove_while_another_closes(path, **options):
        if not other.ident:
            other.start()
            other.join(0.2)  # it ends, unless it waits for us
        remove(path, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_while_another_closes)
    owned.close()
    other.join()
    assert not owned.path.exists()


def test_no_browser_on_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    monkeypatch.delenv("OH_JUPYTER_BROWSER", raising=False)
    env = BrowserEnv()
    with pytest.raises(BrowserNotFoundError, match="oh-jupyter install-browser"):
        env.step("noop(0)")
    assert not env.check_alive()
    env.close()


def test_a_driver_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho lacks libatomic.so.1 >&2\nexit 127\n")
    node.chmod(0o755)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(node))
    env = BrowserEnv()
    with pytest.raises(BrowserDriverError, match=r"Playwright's driver(.|\n)*lacks libatomic"):
        env.step("noop(0)")
    env.close()


@pytest.mark.thorough
def test_a_browser_that_does_not_start(tmp_path: Path):
    broken = tmp_path / "browser"
    broken.write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    broken.chmod(0o755)
    env = BrowserEnv(executable_path=broken, start_attempts=2)
    with pytest.raises(BrowserError, match=r"did not start in 2 attempts(.|\n)*no luck"):
        env.step("noop(0)")
    env.close()
