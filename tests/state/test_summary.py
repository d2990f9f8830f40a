"""Numbers of rows of a ledger, and the removal of a workspace from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from oh_jupyter.editor import FileEditor
from oh_jupyter.errors import ConfigError
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.shared import open_ledger
from oh_jupyter.state.summary import forget_workspace, row_counts, size_bytes
from oh_jupyter.state.tables import CONTENTS, TABLES

APPROVE = "INSERT INTO approvals VALUES (?, 'run', ?, '[]')"
CONVERSE = "INSERT INTO agent_sessions VALUES (?, 'claude', 'x')"


@pytest.fixture
def ledger(tmp_path: Path):
    ledger = Ledger(tmp_path / "state" / "ledger.db")
    yield ledger
    ledger.close()


def test_every_table_is_named_in_plain_words():
    tables = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES))
    assert CONTENTS.keys() == tables - {"identity"}


def test_rows_are_counted_by_table(ledger: Ledger, tmp_path: Path):
    assert (row_counts(ledger), size_bytes(ledger)) == ({}, 0)
    ledger.execute(APPROVE, (os.fsencode(tmp_path), "every_action"))
    assert row_counts(ledger) == {**dict.fromkeys(CONTENTS, 0), "approvals": 1}
    assert size_bytes(ledger) > 4096


def test_a_workspace_is_removed_from_all_tables(ledger: Ledger, tmp_path: Path):
    gone, other = tmp_path / os.fsdecode(b"caf\xe9"), tmp_path / "other"
    for workspace in (gone, other):
        for code in ("every_action", "asked_by_agent"):
            ledger.execute(APPROVE, (os.fsencode(workspace), code))
        ledger.execute(CONVERSE, (os.fsencode(workspace),))
    tmp_path.joinpath("link").symlink_to(gone)
    assert forget_workspace(ledger, str(tmp_path / "link")) == {
        "agent_sessions": 1,
        "approvals": 2,
    }
    assert ledger.rows("SELECT DISTINCT workspace FROM approvals") == [(os.fsencode(other),)]
    with pytest.raises(ConfigError, match=f"has nothing of .*. Workspaces: {other}"):
        forget_workspace(ledger, str(gone))
    assert forget_workspace(ledger, str(other)).keys() == {"agent_sessions", "approvals"}
    with pytest.raises(ConfigError, match="Workspaces: none"):
        forget_workspace(ledger, str(other))


def test_an_error_lists_only_some_workspaces(ledger: Ledger):
    for number in range(8):
        ledger.execute(CONVERSE, (b"/%d" % number,))
    with pytest.raises(ConfigError, match="Workspaces: /0, /1, /2, /3, /4 and 3 more"):
        forget_workspace(ledger, "/unknown")


def test_a_workspace_is_forgotten_with_the_contents_of_its_edits(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace, other = tmp_path / "workspace", tmp_path / "other"
    for folder in (workspace, other):
        folder.mkdir()
        for letter in "xy":
            content = f"{folder.name}{letter}" * 50_000
            FileEditor(folder)(command="write", path=folder / "a.txt", content=content)
    ledger = open_ledger()
    files = list((ledger.path.parent / "ledger.db-contents").iterdir())
    for file in files:
        os.utime(file, (0, 0))
    assert forget_workspace(ledger, str(workspace)) == {"edited_contents": 2, "edited_files": 1}
    assert ledger.rows("SELECT count(*) FROM edits") == [(2,)]
    assert (len(files), sum(file.exists() for file in files)) == (4, 2)
    FileEditor(other)(command="undo_edit", path=other / "a.txt")
    assert (other / "a.txt").read_text() == "otherx" * 50_000 + "\n"
