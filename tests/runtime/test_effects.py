"""Effects of Actions, and the questions about what is outside of an agent's directories."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    UserRejectObservation,
)
from oh_jupyter.runtime import Runtime
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.runtime.effects import Effects, effects
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.testing import wait_until

PATCH = """*** Begin Patch
*** Add File: {}
+x
*** End Patch
"""

GIT_PATCH = """diff --git a/inside.txt b/{0}
rename from inside.txt
rename to {0}
"""


def patch(folder: Path | str, text: str) -> FileEditAction:
    return FileEditAction(str(folder), command="apply_patch", content=text)


@pytest.mark.parametrize(
    ("action", "known"),
    [
        (FileReadAction("a"), Effects(reads=("/w/a",))),
        (FileEditAction("/b", command="view"), Effects(reads=("/b",))),
        (FileWriteAction("a", "x"), Effects(writes=("/w/a",))),
        (FileEditAction("/b", command="create", file_text=""), Effects(writes=("/b",))),
        (patch("/w", PATCH.format("../c")), Effects(writes=("/w", "/w/../c"))),
        (patch("/w", PATCH.format("/c")), Effects(writes=("/w", "/c"))),
        (patch("/w", "no patch"), Effects(writes=("/w",))),
        (
            BrowseInteractiveAction("upload_file('1', ['/s', 'b'])"),
            Effects(reads=("/s", "/w/b"), uploads=True),
        ),
        (
            BrowseInteractiveAction("mouse_upload_file(1, 2, '/s')"),
            Effects(reads=("/s",), uploads=True),
        ),
        (
            BrowseInteractiveAction("noop()\ngoto('file:///etc/pass%77d')"),
            Effects(reads=("/etc/passwd",), addresses=("file:///etc/pass%77d",)),
        ),
        (BrowseURLAction("/etc/passwd"), Effects(("/etc/passwd",), addresses=("/etc/passwd",))),
        (BrowseURLAction("https://a.b/c"), Effects(addresses=("https://a.b/c",))),
        (CmdRunAction("rm -rf /"), Effects()),
    ],
)
def test_everything_that_an_action_names_is_an_effect(action: Action, known: Effects) -> None:
    assert effects(action, "/w") == known


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime that rejects at once what would wait."""
    for name in ("work", "state", "tmp"):
        (tmp_path / name).mkdir()
    settings = Settings(
        workspace_dir=str(tmp_path / "work"),
        sandbox_writable=(str(tmp_path / "shared"),),
        file_store="memory",
        confirmation="risky",
        confirmation_timeout=0.01,
        checkpoints="off",
    )
    runtime = Runtime(settings)
    yield runtime
    runtime.close()


def waits(runtime: Runtime, action: Action) -> str:
    """The reason why an Action of an agent waits, "" if it does not."""
    observation = runtime.submit_action(action).result(60)
    if not isinstance(observation, UserRejectObservation):
        return ""
    return observation.content.partition("it waited because ")[2].rstrip(".)")


@pytest.fixture(autouse=True)
def temporary_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))


NAMES = (
    *(".zshenv", ".bash_logout", ".config/fish/config.fish", ".local/share/jupyter/kernels/p/k"),
    *("site-packages/x.pth", "notes.txt", ".local/state/oh_jupyter/ledger.db", "etc/cron.d"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_outside_waits_for_a_person(runtime: Runtime, tmp_path: Path, name: str) -> None:
    target = tmp_path / "outside" / name
    reason = f"it changes {target}"
    assert waits(runtime, FileWriteAction(str(target), "x")) == reason
    assert waits(runtime, FileWriteAction(f"../outside/{name}", "x")) == reason
    edit = FileEditAction(str(target), command="create", file_text="x")
    assert waits(runtime, edit) == reason
    assert reason in waits(runtime, patch(tmp_path / "work", PATCH.format(target)))
    assert reason in waits(runtime, patch(tmp_path / "outside", PATCH.format(name)))
    (tmp_path / "work" / "inside.txt").write_text("x\n")
    moved = GIT_PATCH.format(f"../outside/{name}")
    assert reason in waits(runtime, patch(tmp_path / "work", moved))
    assert not target.exists()


def test_a_link_leads_outside(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "work" / "link").symlink_to(tmp_path / "outside")
    reason = f"it changes {tmp_path / 'outside' / 'x'}"
    for path in ("link/x", "link/../outside/x", f"{tmp_path / 'work'}/./link//x"):
        assert waits(runtime, FileWriteAction(path, "x")) == reason


def test_an_agents_own_directories_do_not_wait(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    for folder in ("work/new", "tmp", "shared"):
        assert waits(runtime, FileWriteAction(str(tmp_path / folder / "x"), "x")) == ""
        assert (tmp_path / folder / "x").read_text() == "x\n"


def test_an_approval_is_for_the_path_that_it_names(runtime: Runtime, tmp_path: Path) -> None:
    first, second = FileWriteAction("../a", "x"), FileWriteAction("../b", "x")
    reason = Reason("changes_file", (str(tmp_path / "a"),))
    runtime.executor.confirmations.rules.add("write", [reason], "session")
    assert waits(runtime, first) == ""
    assert waits(runtime, second) == f"it changes {tmp_path / 'b'}"


def test_a_relative_path_is_the_one_that_was_asked_about(runtime: Runtime, tmp_path: Path) -> None:
    elsewhere = tmp_path / "outside"
    elsewhere.mkdir()
    runtime.executor.confirmations.timeout_seconds = 60
    runtime.executor.confirmations.policy = "always"
    waiting = runtime.submit_action(FileWriteAction("x", "x"))
    wait_until(lambda: runtime.executor.confirmations.waiting)
    runtime.submit_action(CmdRunAction(f"cd {shlex.quote(str(elsewhere))}"), "user").result(60)
    (id,) = runtime.executor.confirmations.waiting

    async def approve() -> None:
        await runtime.executor.confirmations.resolve(id, Decision(True))

    runtime.submit(approve()).result(60)
    waiting.result(60)
    assert (tmp_path / "work" / "x").read_text() == "x\n"
    assert not (elsewhere / "x").exists()


def test_an_agent_changes_its_own_temporary_files(runtime: Runtime, tmp_path: Path) -> None:
    """Those of other programs are there already."""
    temporary = tmp_path / "tmp"
    (temporary / "others").mkdir(parents=True)
    (temporary / "theirs").write_text("x\n")
    for name in ("theirs", "others/x"):
        reason = f"it changes {temporary / name}"
        assert waits(runtime, FileWriteAction(str(temporary / name), "y")) == reason
    for _ in range(2):
        for name in ("own", "folder/own"):
            assert waits(runtime, FileWriteAction(str(temporary / name), "y")) == ""
    assert (temporary / "folder" / "own").read_text() == "y\n"
    assert (temporary / "theirs").read_text() == "x\n"
