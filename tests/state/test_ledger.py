"""The ledger of a user: shared by threads and processes, and usable after damage or removal."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oh_jupyter.errors import LedgerError
from oh_jupyter.state.ledger import Ledger, statements_by_table
from oh_jupyter.state.location import is_local, ledger_folder, local_folder
from oh_jupyter.state.shared import open_ledger
from oh_jupyter.state.tables import TABLES

ADD = "INSERT INTO identity VALUES (?)"
COUNT = "SELECT count(*) FROM identity"


def count(ledger: Ledger) -> int:
    row = ledger.row(COUNT)
    return 0 if row is None else row[0]


@pytest.fixture
def ledger(tmp_path: Path):
    ledger = Ledger(tmp_path / "state" / "ledger.db")
    yield ledger
    ledger.close()


def test_reading_creates_nothing(ledger: Ledger):
    assert ledger.rows("SELECT * FROM identity") == []
    assert not ledger.path.parent.exists()


def test_each_statement_makes_a_table_or_its_index():
    statements = [each for each in TABLES.split(";\n") if each.strip()]
    by_table = statements_by_table()
    assert sum(map(len, by_table.values())) == len(statements)
    assert all(f"TABLE IF NOT EXISTS {table}" in made[0] for table, made in by_table.items())
    for made in by_table.values():
        connection = sqlite3.connect(":memory:")
        for statement in made:
            connection.execute(statement)
        connection.close()


def test_a_table_is_made_by_the_first_write(ledger: Ledger, monkeypatch):
    identity = ["CREATE TABLE identity(name TEXT)"]
    made = {
        "identity": identity,
        "notes": ["CREATE TABLE notes(text TEXT)", "CREATE INDEX some ON notes(text)"],
    }
    monkeypatch.setattr("oh_jupyter.state.ledger.statements_by_table", lambda: made)
    ledger.execute("INSERT INTO identity VALUES ('x')")
    assert ledger.rows("SELECT * FROM notes") == []
    ledger.execute("INSERT INTO notes VALUES ('one')")
    assert ledger.rows("SELECT * FROM notes") == [("one",)]
    assert ledger.rows("SELECT name FROM sqlite_schema WHERE tbl_name = 'notes'")[1:] == [("some",)]
    with pytest.raises(LedgerError, match="no such table: nonsense"):
        ledger.execute("INSERT INTO nonsense VALUES ('one')")


def test_only_the_owner_can_read_it(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    assert ledger.path.parent.stat().st_mode & 0o777 == 0o700


def test_an_error_in_a_transaction_changes_nothing(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    before = count(ledger)
    with pytest.raises(ZeroDivisionError):
        _add_and_fail(ledger)
    assert count(ledger) == before


def _add_and_fail(ledger: Ledger) -> None:
    with ledger.transaction() as connection:
        connection.execute(ADD, ("two",))
        raise ZeroDivisionError


def test_a_transaction_in_a_transaction_is_part_of_it(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    with ledger.transaction(), ledger.transaction(is_flushed=True) as connection:
        connection.execute(ADD, ("two",))
    assert count(ledger) == 3
    with pytest.raises(ZeroDivisionError):
        _add_nested_and_fail(ledger)
    assert count(ledger) == 3


def _add_nested_and_fail(ledger: Ledger) -> None:
    with ledger.transaction():
        ledger.execute(ADD, ("three",))
        raise ZeroDivisionError


def test_an_inserted_row_is_numbered(ledger: Ledger):
    numbers = [ledger.insert(ADD, (name,)) for name in ("one", "two")]
    assert numbers == [2, 3], "the first is the name of the database"
    with ledger.transaction():
        assert ledger.insert(ADD, ("three",)) == 4
    assert count(ledger) == 4


def test_a_reader_does_not_wait_for_a_writer(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    before = count(ledger)
    with ledger.transaction() as connection:
        connection.execute(ADD, ("two",))
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(count(ledger)))
        thread.start()
        thread.join(20)
        assert seen == [before]
    assert count(ledger) == before + 1


def test_threads_take_turns(ledger: Ledger):
    def add() -> None:
        for _ in range(50):
            with ledger.transaction() as connection:
                (number,) = connection.execute(COUNT).fetchone()
                connection.execute(ADD, (str(number),))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [int(name) for (name,) in ledger.rows("SELECT name FROM identity")[1:]]
    assert numbers == list(range(1, 201))


def test_processes_take_turns(ledger: Ledger):
    script = (
        "import sys; from pathlib import Path; from oh_jupyter.state.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "for _ in range(50):\n"
        "    with ledger.transaction() as connection:\n"
        "        (n,) = connection.execute('SELECT count(*) FROM identity').fetchone()\n"
        "        connection.execute('INSERT INTO identity VALUES (?)', (str(n),))\n"
    )
    command = [sys.executable, "-c", script, str(ledger.path)]
    children = [subprocess.Popen(command) for _ in range(3)]
    assert [child.wait(60) for child in children] == [0, 0, 0]
    assert count(ledger) == 151


def test_another_process_that_closes_it_leaves_the_log(ledger: Ledger):
    """SQLite removes the log with the last connection, which a lock of this process prevents."""
    ledger.execute(ADD, ("one",))
    assert count(ledger) == 2
    script = (
        "import sys; from pathlib import Path; from oh_jupyter.state.ledger import Ledger\n"
        "ledger = Ledger(Path(sys.argv[1]))\n"
        "ledger.execute('INSERT INTO identity VALUES (?)', ('other',))\n"
        "ledger.close()\n"
    )
    for number in (3, 5):
        subprocess.run([sys.executable, "-c", script, str(ledger.path)], check=True)
        assert Path(f"{ledger.path}-wal").exists()
        assert count(ledger) == number
        ledger.execute(ADD, ("again",))
    assert Ledger(ledger.path).row("SELECT count(*) FROM identity") == (6,)


def test_a_forked_child_has_connections_of_its_own(ledger: Ledger):
    ledger.execute(ADD, ("parent",))
    with ledger.transaction() as connection:
        child = multiprocessing.get_context("fork").Process(target=_read, args=(ledger,))
        child.start()
        child.join(30)
        assert child.exitcode == 0
        connection.execute(ADD, ("parent",))
    child = multiprocessing.get_context("fork").Process(target=_write, args=(ledger,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert count(ledger) == 4


def _read(ledger: Ledger) -> None:
    assert count(ledger) == 2


def _write(ledger: Ledger) -> None:
    ledger.execute(ADD, ("child",))


def test_a_removed_file_begins_again(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    name = ledger.name
    for file in ledger.path.parent.iterdir():
        file.unlink()
    assert ledger.rows(COUNT) == []
    ledger.execute(ADD, ("two",))
    assert count(ledger) == 2
    assert ledger.name != name


@pytest.mark.parametrize("start", [0, 3900])
def test_a_damaged_file_is_moved_aside(ledger: Ledger, start: int, caplog):
    ledger.execute(ADD, ("one",))
    ledger.close()
    contents = bytearray(ledger.path.read_bytes())
    contents[start : start + 2000] = os.urandom(2000)
    ledger.path.write_bytes(contents)
    ledger.execute(ADD, ("two",))
    assert count(ledger) == 2
    (aside,) = ledger.damaged()
    assert aside.read_bytes() == contents
    assert "was damaged" in caplog.text


def test_a_damaged_file_stays_where_that_is_asked_for(tmp_path: Path):
    path = tmp_path / "notes.db"
    path.write_text("no database, but somebody's " * 50)
    ledger = Ledger(path, is_replaced=False)
    with pytest.raises(LedgerError, match="file is not a database"):
        ledger.execute(ADD, ("one",))
    assert path.read_text().startswith("no database")
    assert ledger.damaged() == []


def test_damage_under_an_open_connection_is_reported_once(ledger: Ledger):
    with ledger.transaction() as connection:
        connection.executemany(ADD, [("x" * 3000,)] * 50)
    assert count(ledger) == 51
    connection = sqlite3.connect(ledger.path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with open(ledger.path, "r+b") as file:
        file.seek(4096 * 2)
        file.write(os.urandom(4096 * 40))
    with pytest.raises(LedgerError, match="malformed"):
        ledger.rows("SELECT sum(length(name)) FROM identity")
    assert count(ledger) == 0
    ledger.execute(ADD, ("again",))
    assert count(ledger) == 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path):
    tmp_path.joinpath("file").write_text("")
    ledger = Ledger(tmp_path / "file" / "ledger.db")
    assert ledger.rows(COUNT) == []
    with pytest.raises(LedgerError, match=r"file/ledger.db cannot be read or written.*try again"):
        ledger.execute(ADD, ("one",))


def test_a_temporary_ledger_reads_what_it_wrote():
    ledger = Ledger(None)
    ledger.execute(ADD, ("one",))
    assert count(ledger) == 2
    ledger.close()


def test_a_flushed_transaction_is_on_the_disk(ledger: Ledger):
    ledger.execute(ADD, ("one",))
    with ledger.transaction(is_flushed=True) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with ledger.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_a_folder_has_one_ledger_in_a_process(tmp_path: Path):
    tmp_path.joinpath("link").symlink_to(tmp_path)
    assert open_ledger(tmp_path) is open_ledger(tmp_path / "link")
    assert open_ledger().path.parent == ledger_folder()


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="of systems that list open files")
def test_a_ledger_closes_with_its_last_user(tmp_path: Path):
    def use(number: int) -> None:
        ledger = open_ledger(tmp_path / str(number))
        ledger.execute(ADD, ("one",))
        assert count(ledger) == 2

    use(0)
    before = len(os.listdir("/dev/fd"))
    for number in range(1, 20):
        use(number)
    assert len(os.listdir("/dev/fd")) <= before
    assert open_ledger() is open_ledger()


def test_a_local_folder_is_used_as_it_is(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "missing"))
    assert is_local(tmp_path)
    assert ledger_folder() == tmp_path / "missing" / "oh_jupyter"


def test_a_folder_on_a_network_is_replaced_by_a_private_one(monkeypatch):
    # /proc stands for a network: it has no device, and a type that is none of a disk or memory.
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    assert not is_local(Path("/proc"))
    folder = ledger_folder()
    assert folder == local_folder(Path("/proc/oh_jupyter"))
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert folder.parent.stat().st_uid == os.geteuid()
