"""Approvals are saved by the codes of their reasons."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from oh_jupyter.runtime.approvals import ApprovalRule, ApprovalRules
from oh_jupyter.runtime.reasons import SENTENCES, Reason

OUTSIDE = Reason("writes_outside", ("/srv/data",))
SUDO = Reason("becomes_other_user")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def saved(state: Path) -> Path:
    (file,) = state.rglob("*.json")
    return file


def test_the_file_has_codes_and_parameters(state: Path, tmp_path: Path) -> None:
    ApprovalRules(str(tmp_path)).add("run_ipython", [SUDO, OUTSIDE], "workspace")
    assert json.loads(saved(state).read_bytes()) == [
        ["run_ipython", "becomes_other_user", []],
        ["run_ipython", "writes_outside", ["/srv/data"]],
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
    "entry",
    [["run", "made_up", []], ["run", "changes_file", []], ["run", ["becomes_other_user"], []]],
    ids=["an unknown code", "a missing parameter", "no code"],
)
def test_one_unreadable_approval_leaves_the_others(
    entry: object, state: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = ApprovalRules(str(tmp_path))
    rules.add("run", [SUDO], "workspace")
    saved(state).write_text(json.dumps([entry, ["run", "becomes_other_user", []]]))
    with caplog.at_level(logging.WARNING):
        assert rules.list() == [ApprovalRule("run", "it becomes another user", "workspace")]
    assert f"An approval in {saved(state)} is ignored" in caplog.text


@pytest.mark.parametrize("text", ["{", "7", "[7]", '[["run", "it becomes another user"]]'])
def test_a_file_of_another_form_is_ignored(
    text: str, state: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = ApprovalRules(str(tmp_path))
    rules.add("run", [SUDO], "workspace")
    saved(state).write_text(text)
    with caplog.at_level(logging.WARNING):
        assert not rules.covers("run", [SUDO])
    assert f"The approvals in {saved(state)} are ignored" in caplog.text
    rules.add("run", [SUDO], "workspace")
    assert rules.covers("run", [SUDO])


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
