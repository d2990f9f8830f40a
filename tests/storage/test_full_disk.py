"""A disk without room: what was there stays, and everything goes on when there is room again."""

import os
import subprocess
from threading import Thread

import pytest

from oh_jupyter.errors import StorageError
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import LocalFileStore, WebHookFileStore
from oh_jupyter.storage.webhook import outbox as outbox_module
from oh_jupyter.storage.webhook.change_table import ChangeTable
from oh_jupyter.storage.webhook.changes import Change
from oh_jupyter.storage.webhook.outbox import Outbox


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_the_old_contents_stay(small_disk):
    store = LocalFileStore(str(small_disk))
    store.write("f", "old")
    for use in (
        lambda: store.write("f", b"x" * 5_000_000),
        lambda: store.create("g", b"x" * 5_000_000),
        lambda: store.write_many({"h": b"x" * 5_000_000}),
    ):
        with pytest.raises(StorageError, match="No space left"):
            use()
    with pytest.raises(OSError, match="No space left"), store.open("f", "wb") as file:  # noqa: PT012
        for _ in range(50):
            file.write(b"x" * 100_000)
    assert store.read("f") == "old"
    assert os.listdir(small_disk) == ["f"]
    store.write("f", "new")
    assert store.read("f") == "new"


def test_events_are_kept_until_there_is_room(small_disk):
    store = LocalFileStore(str(small_disk))
    stream = EventStream(store, "s")
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:  # noqa: PT012
        while True:
            file.write(b"x" * 4096)
    for n in range(20):
        stream.add_event(MessageAction(str(n) * 1000), "user")
    with pytest.raises(StorageError, match="No space left"):
        stream.flush()
    assert len(stream.search()) == 20
    filler.unlink()
    stream.flush()
    assert len(store.list("sessions/s/events")) == 20
    stream.close()


def fill(disk):
    with pytest.raises(OSError, match="No space"), (disk / "filler").open("wb", 0) as file:  # noqa: PT012
        while True:
            file.write(b"x" * 4096)


def sent(receiver):
    return {request.path.removeprefix("/hook/"): request.body for request in receiver.requests}


def test_an_outbox_on_a_full_disk_loses_nothing(small_disk, tmp_path, make, receiver, caplog):
    store = make(
        WebHookFileStore,
        store=LocalFileStore(str(tmp_path / "store")),
        outbox=small_disk / "outbox",
    )
    receiver.gate.clear()
    written = {f"d{n}/f": os.urandom(100_000 if n % 2 else 3000) for n in range(30)}
    written["large"] = os.urandom(3_000_000)
    for path, contents in written.items():
        store.write(path, contents)
    assert len(store.deliveries()) == len(written)
    assert caplog.text.count("kept in memory until it can") == 1
    receiver.gate.set()
    report = store.flush()
    assert (report.delivered, report.failed, report.pending) == (len(written), (), 0)
    assert sent(receiver) == written
    assert not os.listdir(small_disk / "outbox/outbox.sqlite3-bodies")
    assert all(store.read_bytes(path) == contents for path, contents in written.items())


def test_an_outbox_that_was_tried_on_a_full_disk_drains(small_disk, make, receiver, quick):
    store = make(WebHookFileStore, outbox=small_disk / "outbox")
    paths = [f"{n}" for n in range(12)]
    receiver.refused = dict.fromkeys((f"/hook/{path}" for path in paths), 503)
    for path in paths:
        store.write(path, os.urandom(40_000))
        if path == "8":
            store.flush()
            fill(small_disk)
    store.flush()
    assert len(store.deliveries()) == 12
    receiver.refused = {}
    receiver.requests.clear()
    while store.flush().pending:
        pass
    assert sent(receiver).keys() == set(paths)
    assert store.deliveries() == []


def test_what_waited_in_memory_is_on_disk_when_there_is_room(small_disk, make, receiver, quick):
    store = make(WebHookFileStore, outbox=small_disk / "outbox")
    receiver.refused = dict.fromkeys(("/hook/small", "/hook/large"), 503)
    fill(small_disk)
    contents = {"small": os.urandom(30_000), "large": os.urandom(300_000)}
    for path, data in contents.items():
        store.write(path, data)
    store.flush()
    (small_disk / "filler").unlink()
    store.flush()
    store.close()
    receiver.refused = {}
    receiver.requests.clear()
    again = make(WebHookFileStore, outbox=small_disk / "outbox")
    while again.flush().pending:
        pass
    assert sent(receiver) == contents


def test_a_change_that_moves_to_the_disk_is_pending_all_the_time(small_disk, monkeypatch):
    outbox = Outbox(str(small_disk / "outbox.sqlite3"))
    fill(small_disk)
    number = outbox.add(Change("POST", "f", "f", os.urandom(300_000)))
    assert outbox.undurable == 1
    (small_disk / "filler").unlink()
    mover = Thread(target=outbox.maintain)
    read = ChangeTable.pending

    def read_while_it_moves(table):
        changes = list(read(table))
        if mover.ident is None:
            mover.start()
            mover.join(0.5)  # which it cannot
        return changes

    monkeypatch.setattr(ChangeTable, "pending", read_while_it_moves)
    assert [change.number for change in outbox.pending()] == [number]
    mover.join()
    assert outbox.undurable == 0
    outbox.close()


def test_what_cannot_be_kept_at_all_is_listed(small_disk, make, receiver, monkeypatch):
    monkeypatch.setattr(outbox_module, "_MAX_OVERFLOW_BYTES", 1_000_000)
    store = make(WebHookFileStore, outbox=small_disk / "outbox")
    receiver.gate.clear()
    for n in range(25):
        store.write(f"{n}", os.urandom(100_000))
    lost = [d for d in store.deliveries() if d.state == "dead"]
    assert 0 < len(lost) < 25
    assert len(store.deliveries()) == 25
    receiver.gate.set()
    report = store.flush()
    assert report.delivered == 25 - len(lost)
    assert {failed.path for failed in report.failed} == {letter.path for letter in lost}
    assert all("outbox failed" in letter.reason for letter in lost)
