"""A disk without room: what was there stays, and everything goes on when there is room again."""

import os
import subprocess

import pytest

from oh_jupyter.errors import StorageError
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import LocalFileStore, WebHookFileStore


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


def test_an_outbox_on_a_full_disk_does_not_stop_a_write(small_disk, tmp_path, receiver):
    store = WebHookFileStore(
        LocalFileStore(str(tmp_path / "store")), receiver.url, outbox=small_disk / "outbox"
    )
    for n in range(8):
        store.write(f"{n}", os.urandom(300_000))
        store.flush()
    store.write("large", os.urandom(3_000_000))
    report = store.flush()
    assert [failed.path for failed in report.failed] == ["large"]
    assert "outbox failed" in report.failed[0].reason
    assert len(store.read_bytes("large")) == 3_000_000
    store.write("small", "x")
    assert store.flush().delivered == 1
    store.close()
    store.client.close()
