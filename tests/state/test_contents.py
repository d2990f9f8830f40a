"""Large contents beside a ledger."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oh_jupyter.state.contents import contents_of, discard_orphans
from oh_jupyter.state.ledger import Ledger

ADD = (
    "INSERT INTO pending_files(store, key, time, size, digest, sent, contents, file) "
    "VALUES ('store', 'a', 0, 100000, '', '', ?, ?)"
)


@pytest.fixture
def ledger(tmp_path: Path):
    ledger = Ledger(tmp_path / "state" / "ledger.db")
    yield ledger
    ledger.close()


def put_old(ledger: Ledger, data: bytes) -> Path:
    name = contents_of(ledger).put(data).name
    assert name is not None
    file = contents_of(ledger).folder / name
    os.utime(file, (0, 0))
    return file


def test_contents_that_no_row_names_are_removed(ledger: Ledger):
    named, orphan = put_old(ledger, bytes(100_000)), put_old(ledger, bytes(100_000))
    ledger.execute(ADD, (None, named.name))
    discard_orphans(ledger)
    assert [*named.parent.iterdir()] == [named]
    assert not orphan.exists()


def test_contents_that_a_damaged_ledger_may_name_stay(ledger: Ledger):
    named = put_old(ledger, bytes(100_000))
    ledger.execute(ADD, (None, named.name))
    ledger.close()
    ledger.path.write_bytes(b"no database" * 1000)
    assert ledger.rows("SELECT * FROM pending_files") == []
    discard_orphans(ledger)
    assert named.exists()
    (aside,) = ledger.damaged()
    aside.unlink()
    discard_orphans(ledger)
    assert not named.exists()
