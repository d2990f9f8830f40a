"""Large contents beside a ledger."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("table", ["deliveries", "dead_letters"])
def test_contents_of_an_outbox_stay(ledger: Ledger, table: str):
    values = {"method": "POST", "path": "/a", "key": "a", "size": 1, "recorded": 0.0}
    if table == "dead_letters":
        values |= {"id": "1", "attempts": 1, "reason": "refused"}
    values["file"] = put_old(ledger, bytes(100_000)).name
    names = ", ".join(f":{name}" for name in values)
    ledger.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES ({names})", values)
    discard_orphans(ledger)
    with contents_of(ledger).open(values["file"]) as file:
        assert file.read() == bytes(100_000)
    ledger.execute(f"DELETE FROM {table}")
    discard_orphans(ledger)
    with pytest.raises(FileNotFoundError):
        contents_of(ledger).open(values["file"])


def test_ledgers_in_one_folder_have_contents_of_their_own(ledger: Ledger):
    other = Ledger(ledger.path.with_name("outbox.sqlite3"))
    file = put_old(other, bytes(100_000))
    discard_orphans(ledger)
    assert file.exists()
    discard_orphans(other)
    assert not file.exists()


def test_a_copy_of_a_file_is_private(ledger: Ledger, tmp_path: Path):
    source = tmp_path / "source"
    source.write_bytes(b"small")
    contents = contents_of(ledger)
    name, size = contents.copy(str(source))
    assert size == 5
    assert contents.get(None, name) == b"small"
    assert (contents.folder / name).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileNotFoundError):
        contents.copy(str(tmp_path / "missing"))
    assert [each.name for each in contents.folder.iterdir()] == [name]


def test_contents_of_a_temporary_ledger_end_with_it():
    contents = contents_of(Ledger(None))
    for _ in range(2):
        name = contents.put(bytes(100_000)).name
        folder = contents.folder
        assert contents.get(None, name) == bytes(100_000)
        contents.close()
        assert not folder.exists()
        with pytest.raises(LookupError):
            contents.get(None, name)


def test_threads_that_store_the_first_contents_share_the_temporary_folder(monkeypatch):
    contents = contents_of(Ledger(None))
    both, make = threading.Barrier(2), os.mkdir

    def make_together(*args: Any, **options: Any) -> None:
        both.wait(60)
        make(*args, **options)

    monkeypatch.setattr(os, "mkdir", make_together)
    with ThreadPoolExecutor(2) as pool:
        stored = list(pool.map(contents.put, [b"a" * 100_000, b"b" * 100_000]))
    assert [contents.get(*each)[:1] for each in stored] == [b"a", b"b"]
    contents.close()


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
