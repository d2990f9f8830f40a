"""A full disk: old contents stay, and work continues when there is room again."""

import os

import pytest

from oh_jupyter.errors import StorageError
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import LocalFileStore, WebHookFileStore


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


def test_a_full_outbox_drains_and_lists_dropped_changes(
    small_disk, tmp_path, make, receiver, caplog
):
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
    assert all(store.read_bytes(path) == contents for path, contents in written.items())
    assert {delivery.path for delivery in store.deliveries()} == written.keys()
    lost = {letter.path: letter for letter in store.deliveries() if letter.state == "dead"}
    assert "large" in lost
    assert len(lost) < 25
    assert all("outbox failed" in letter.reason for letter in lost.values())
    assert caplog.text.count("will not be reported") == len(lost)
    receiver.gate.set()
    report = store.flush()
    assert (report.delivered, report.pending) == (len(written) - len(lost), 0)
    assert {failed.path for failed in report.failed} == lost.keys()
    assert sent(receiver) == {path: written[path] for path in written.keys() - lost.keys()}
    assert not os.listdir(small_disk / "outbox/outbox.sqlite3-contents")
    # There is room again.
    store.write("d0/f", written["d1/f"])
    assert store.flush().delivered == 1
    store.close()
    again = make(WebHookFileStore, outbox=small_disk / "outbox")
    assert {letter.path for letter in again.deliveries()} == lost.keys()
    assert again.replay() == 0  # their contents were not kept
    assert again.discard() == len(lost)
    assert again.deliveries() == []


def test_an_outbox_that_was_tried_on_a_full_disk_drains(small_disk, make, receiver, quick):
    store = make(WebHookFileStore, outbox=small_disk / "outbox")
    paths = [f"{n}" for n in range(9)]
    receiver.refused = dict.fromkeys((f"/hook/{path}" for path in paths), 503)
    for path in paths:
        store.write(path, os.urandom(40_000))
    store.flush()
    fill(small_disk)
    store.write("lost", os.urandom(40_000))
    store.flush()
    assert len(store.deliveries()) == 10
    receiver.refused = {}
    receiver.requests.clear()
    while store.flush().pending:
        pass
    assert sent(receiver).keys() == set(paths)
    assert [letter.path for letter in store.deliveries()] == ["lost"]
    (small_disk / "filler").unlink()
    assert store.discard() == 1
    store.close()
    assert make(WebHookFileStore, outbox=small_disk / "outbox").deliveries() == []
