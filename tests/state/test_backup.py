"""Verification and backup of a ledger that is in use."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from oh_jupyter.errors import ConfigError, LedgerError
from oh_jupyter.state.backup import back_up, find_damage
from oh_jupyter.state.ledger import Ledger

ADD = "INSERT INTO identity VALUES (?)"


@pytest.fixture
def ledger(tmp_path: Path):
    ledger = Ledger(tmp_path / "state" / "ledger.db")
    ledger.execute(ADD, ("one",))
    yield ledger
    ledger.close()


def damage(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(4096 * 8))


def test_a_backup_is_one_file_of_one_moment(ledger: Ledger, tmp_path: Path):
    target = tmp_path / os.fsdecode(b"caf\xe9.db")
    with ledger.transaction() as connection:
        connection.execute(ADD, ("unfinished",))
        back_up(ledger.path, target)
    assert target.stat().st_mode & 0o777 == 0o600
    target.rename(tmp_path / "elsewhere.db")
    copy = Ledger(tmp_path / "elsewhere.db")
    assert copy.rows("SELECT name FROM identity")[1:] == [("one",)]
    assert copy.name == ledger.name
    copy.close()


def test_a_backup_overwrites_nothing(ledger: Ledger, tmp_path: Path):
    target = tmp_path / "target"
    target.write_text("a person's")
    with pytest.raises(ConfigError, match="target exists already"):
        back_up(ledger.path, target)
    target.unlink()
    target.symlink_to("nowhere")
    with pytest.raises(ConfigError, match="target exists already"):
        back_up(ledger.path, target)
    with pytest.raises(LedgerError, match="x cannot be written: No such file or directory"):
        back_up(ledger.path, tmp_path / "missing" / "x")
    with pytest.raises(LedgerError, match="There is no ledger"):
        back_up(tmp_path / "missing.db", tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("is_overwritten", [False, True])
def test_damage_is_reported_and_nothing_is_moved(
    ledger: Ledger, tmp_path: Path, is_overwritten: bool
):
    assert find_damage(ledger.path) == ""
    ledger.close()
    if is_overwritten:
        ledger.path.write_bytes(b"no database" * 1000)
    else:
        damage(ledger.path)
    contents = ledger.path.read_bytes()
    assert find_damage(ledger.path)
    with pytest.raises(LedgerError, match="is damaged"):
        back_up(ledger.path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert ledger.path.read_bytes() == contents
    assert ledger.damaged() == []
