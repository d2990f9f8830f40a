"""``oh-jupyter state``: the ledger as a person sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from oh_jupyter.cli import main
from oh_jupyter.config import Settings, state_home
from oh_jupyter.doctor import Check, examine
from oh_jupyter.runtime.approvals import ApprovalRules
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.sandbox.mounts import own_folders
from oh_jupyter.state.location import ledger_folder, obstacle
from oh_jupyter.state.shared import close_ledgers, open_ledger

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def ledger_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "oh_jupyter" / "ledger.db"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["state", *arguments])
        return status, *capsys.readouterr()

    return run


def approve(workspace: Path) -> None:
    ApprovalRules(str(workspace)).add("run", [Reason("every_action")], "workspace")


def ledger_checks() -> list[Check]:
    checks = examine(Settings(file_store="memory"))
    return [check for check in checks if "ledger" in check.name]


def test_nothing_was_saved_yet(run: Run, ledger_path: Path, tmp_path: Path) -> None:
    missing = f"{ledger_path} does not exist yet; nothing was saved.\n"
    assert run() == run("verify") == (0, missing, "")
    assert json.loads(run("--json")[1])["rows"] == {}
    error = f"oh-jupyter: There is no ledger {ledger_path} yet: nothing was saved.\n"
    assert run("backup", str(tmp_path / "x")) == (1, "", error)
    assert not ledger_path.parent.exists()


def test_it_is_shown_verified_and_copied(run: Run, ledger_path: Path, tmp_path: Path) -> None:
    approve(tmp_path)
    status, shown, _ = run()
    assert status == 0
    assert shown.startswith(f"{ledger_path}: ")
    assert "       1  approvals that hold for a workspace\n" in shown
    seen = json.loads(run("--json")[1])
    assert (seen["path"], seen["reason"], seen["damaged"]) == (str(ledger_path), "", [])
    assert (seen["rows"]["approvals"], seen["bytes"] > 4096) == (1, True)
    assert run("verify") == (0, f"{ledger_path} is not damaged.\n", "")
    copy = tmp_path / "copy"
    assert run("backup", str(copy)) == (0, f"Copied {ledger_path} to {copy}.\n", "")
    error = f"oh-jupyter: {copy} exists already. Name a new file\n"
    assert run("backup", str(copy)) == (1, "", error)


def test_a_workspace_is_forgotten(run: Run, ledger_path: Path, tmp_path: Path) -> None:
    approve(tmp_path)
    removed = "Removed:\n       1  approvals that hold for a workspace\n"
    assert run("forget", str(tmp_path)) == (0, removed, "")
    error = f"oh-jupyter: the ledger {ledger_path} has nothing of {tmp_path}. Workspaces: none\n"
    assert run("forget", str(tmp_path)) == (1, "", error)


def test_damage_is_reported_and_then_listed(run: Run, ledger_path: Path, tmp_path: Path) -> None:
    approve(tmp_path)
    close_ledgers()
    ledger_path.write_bytes(b"no database" * 1000)
    status, shown, _ = run("verify")
    assert (status, shown.count("\n")) == (1, 1)
    assert shown.startswith(f"{ledger_path} is damaged: file is not a database. The next program")
    assert run()[0] == 0
    (aside,) = open_ledger().damaged()
    assert f"Damaged, and moved aside: {aside}\n" in run()[1]
    assert json.loads(run("--json")[1])["damaged"] == [str(aside)]
    ledger, damaged = ledger_checks()
    assert (ledger.status, damaged.status, damaged.mend) == ("ok", "wrong", f"rm {aside}*")


def test_an_unusable_ledger_is_one_line(run: Run, ledger_path: Path, tmp_path: Path) -> None:
    ledger_path.mkdir(parents=True)
    for arguments in ((), ("verify",), ("backup", str(tmp_path / "x")), ("forget", ".")):
        status, shown, error = run(*arguments)
        assert (status, (shown + error).count("\n")) == (1, 1)
        assert f"{ledger_path} cannot be read" in error
    (check,) = ledger_checks()
    assert (check.status, check.mend) == ("wrong", "see oh-jupyter state verify")
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs a file system without a device")
def test_a_ledger_elsewhere_is_explained_and_hidden_from_boxes(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # /proc stands for a network, as in tests/state/test_ledger.py.
    assert own_folders(Settings()).count(str(ledger_folder())) == 1
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    folder, reason = ledger_folder(), f"/proc/oh_jupyter {obstacle(state_home())}"
    assert str(folder) in own_folders(Settings())
    shown = run()[1]
    assert shown.startswith(f"{folder / 'ledger.db'} does not exist yet")
    assert f"It is there because {reason}.\n" in shown
    assert json.loads(run("--json")[1])["reason"] == reason
    (check,) = ledger_checks()
    where = f"{folder / 'ledger.db'}, because {reason}"
    assert (check.status, check.found) == ("ok", where)
