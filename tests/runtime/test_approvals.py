"""Approvals are saved by the codes of their reasons."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from oh_jupyter.errors import ConfirmationError
from oh_jupyter.runtime.approvals import ApprovalRule, ApprovalRules
from oh_jupyter.runtime.reasons import SENTENCES, Reason
from oh_jupyter.state.shared import open_ledger

OUTSIDE = Reason("writes_outside", ("/srv/data",))
SUDO = Reason("becomes_other_user")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_the_rows_have_codes_and_parameters(tmp_path: Path) -> None:
    ApprovalRules(str(tmp_path)).add("run_ipython", [SUDO, OUTSIDE], "workspace")
    assert open_ledger().rows("SELECT * FROM approvals") == [
        (os.fsencode(tmp_path), "run_ipython", "becomes_other_user", "[]"),
        (os.fsencode(tmp_path), "run_ipython", "writes_outside", '["/srv/data"]'),
    ]


def test_a_reworded_sentence_loses_no_approval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = ApprovalRules(str(tmp_path))
    rules.add("run", [SUDO], "session")
    rules.add("run_ipython", [OUTSIDE], "workspace")
    monkeypatch.setitem(SENTENCES, "becomes_other_user", "it runs as another user")
    monkeypatch.setitem(SENTENCES, "writes_outside", "it writes to another folder")
    assert rules.covers("run", [SUDO])
    later = ApprovalRules(str(tmp_path))
    assert later.covers("run_ipython", [OUTSIDE])
    assert not later.covers("run_ipython", [Reason("writes_outside", ("/srv/other",))])
    assert rules.list() == [
        ApprovalRule("run", "it runs as another user", "session"),
        ApprovalRule("run_ipython", "it writes to another folder", "workspace"),
    ]
    rules.forget(2)
    assert not later.covers("run_ipython", [OUTSIDE])


@pytest.mark.parametrize(
    "row",
    [
        ("made_up", "[]"),
        ("changes_file", "[]"),
        ("becomes_other_user", "{"),
        ("becomes_other_user", "7"),
        ("changes_file", "[7]"),
        (7, b"\xff"),
    ],
    ids=["an unknown code", "a missing parameter", "no JSON", "no list", "no text", "no code"],
)
def test_one_unreadable_approval_leaves_the_others(
    row: tuple[object, object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = ApprovalRules(str(tmp_path))
    rules.add("run", [SUDO], "workspace")
    values = (os.fsencode(tmp_path), *row)
    open_ledger().execute("INSERT INTO approvals VALUES (?, 'run', ?, ?)", values)
    with caplog.at_level(logging.WARNING):
        assert rules.list() == [ApprovalRule("run", "it becomes another user", "workspace")]
    assert f"An approval in {open_ledger().path} is ignored" in caplog.text


def test_an_unusable_ledger_covers_nothing_and_says_so(
    state: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = ApprovalRules(str(tmp_path))
    (state / "oh_jupyter" / "ledger.db").mkdir(parents=True)
    with caplog.at_level(logging.WARNING):
        assert not rules.covers("run", [SUDO])
    assert "The approvals of the workspace are ignored" in caplog.text
    with pytest.raises(ConfirmationError, match=r"cannot be saved: The ledger .*ledger\.db"):
        rules.add("run", [SUDO], "workspace")


def test_two_kernels_of_one_process_lose_no_approval(tmp_path: Path) -> None:
    reasons = {
        name: [Reason("changes_file", (f"/{name}/{number}",)) for number in range(25)]
        for name in ("one", "two")
    }

    def add(own: list[Reason]) -> None:
        rules = ApprovalRules(str(tmp_path))
        for reason in own:
            rules.add("write", [reason], "workspace")

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(add, reasons.values())) == [None, None]
    assert ApprovalRules(str(tmp_path)).covers("write", [*reasons["one"], *reasons["two"]])
