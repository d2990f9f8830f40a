"""Long texts of events are files of their own, which are read back as a whole."""

import hashlib
import json
import os
import stat

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.errors import StorageError
from oh_jupyter.events import (
    CmdRunAction,
    ErrorObservation,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
    MCPAction,
)
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import from_wire
from oh_jupyter.runtime.replay import Replayer
from oh_jupyter.storage import InMemoryFileStore, LocalFileStore

LONG = "0123456789abcdé\n" * 100
SMALL_LIMIT_CHARS = 1000


@pytest.fixture
def store(tmp_path):
    return LocalFileStore(str(tmp_path / "store"))


@pytest.fixture
def stream(store):
    with_threads = EventStream(store, "s1", max_inline_chars=SMALL_LIMIT_CHARS)
    yield with_threads
    with_threads.close()


def digest_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


def stored(store, id):
    return json.loads(store.read(f"sessions/s1/events/{id}.json"))


def test_an_event_has_the_first_part_and_refers_to_the_whole(store, stream):
    text = LONG * 20
    stream.add_event(FileWriteAction("a.txt", text), "agent")
    stream.flush(30)
    event = stored(store, 0)
    assert event["args"]["path"] == "a.txt"
    assert event["args"]["content"].startswith(text[:10_000])
    assert len(event["args"]["content"]) < 10_100
    key = f"sessions/s1/blobs/{digest_of(text)}"
    reference = {"key": key, "bytes": len(text.encode()), "sha256": digest_of(text)}
    assert event["oh_jupyter"] == {"blobs": {"/args/content": reference}}
    assert store.read(key) == text
    assert from_wire(event).path == "a.txt"  # as other programs read it, too


def test_readers_get_the_whole_text(store, stream):
    written = [
        FileWriteAction("a.txt", LONG),
        FileReadObservation(LONG + "other", path="a.txt"),
        MCPAction("tool", {"a/b~c": [{"text": LONG}], "n": 1}),
        CmdRunAction("echo short"),
    ]
    for event in written:
        stream.add_event(event, "agent")
    stream.flush(30)
    again = EventStream(store, "s1")
    assert again.search() == written
    assert [again.get_event(id) for id in range(4)] == written
    first_parts = again.search(whole=False)
    assert first_parts[0].content.endswith(f"\n[... {len(LONG)} characters]")
    assert first_parts[3] == written[3]


def test_a_text_that_is_there_twice_is_stored_once(store, stream):
    for _ in range(3):
        stream.add_event(FileWriteAction("a.txt", LONG), "agent")
    stream.flush(30)
    assert len(store.list("sessions/s1/blobs")) == 1


def test_a_message_that_repeats_the_content_is_cut(store, stream):
    stream.add_event(ErrorObservation(LONG), "environment")
    stream.flush(30)
    assert list(stored(store, 0)["oh_jupyter"]["blobs"]) == ["/content"]
    assert stream.get_event(0).content == LONG


def test_many_short_texts_stay_in_the_event(store, stream):
    stream.add_event(MCPAction("tool", {"words": ["short"] * SMALL_LIMIT_CHARS}), "agent")
    stream.flush(30)
    assert "oh_jupyter" not in stored(store, 0)


def test_secrets_are_in_neither(store, stream):
    stream.mask(["hunter2"])
    stream.add_event(FileWriteAction("a.txt", LONG + "hunter2" + LONG), "agent")
    stream.flush(30)
    (key,) = store.list("sessions/s1/blobs")
    assert "hunter2" not in store.read(key)
    assert stream.get_event(0).content == LONG + "<secret_hidden>" + LONG


def test_a_missing_text_is_named(store, stream):
    stream.add_event(FileWriteAction("a.txt", LONG), "agent")
    stream.flush(30)
    store.delete(f"sessions/s1/blobs/{digest_of(LONG)}")
    with pytest.raises(StorageError, match="The text '/args/content' of event 0 is missing"):
        stream.get_event(0)
    (event,) = stream.search()
    assert event.content.startswith(LONG[:100])
    assert "'/args/content' of event 0 is missing" in event.content


def test_a_changed_text_counts_as_missing(store, stream):
    stream.add_event(FileWriteAction("a.txt", LONG), "agent")
    stream.flush(30)
    store.write(f"sessions/s1/blobs/{digest_of(LONG)}", "something else")
    with pytest.raises(StorageError, match="it was changed"):
        stream.get_event(0)


def test_an_event_cannot_name_another_file(store, stream):
    store.write("secret", "a secret")
    wire = {"id": 0, "action": "write", "args": {"path": "a", "content": "b"}}
    reference = {"key": "secret", "bytes": 8, "sha256": "../../../secret"}
    wire["oh_jupyter"] = {"blobs": {"/args/content": reference}}
    store.write("sessions/s1/events/0.json", json.dumps(wire))
    with pytest.raises(StorageError, match="is not a digest"):
        EventStream(store, "s1").get_event(0)


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="permissions are of POSIX")
def test_blobs_are_readable_only_by_their_owner(store, stream):
    stream.add_event(FileWriteAction("a.txt", LONG), "agent")
    stream.flush(30)
    (key,) = store.list("sessions/s1/blobs")
    file = store.get_absolute_path(key)
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(file)).st_mode) == 0o700


def test_a_store_that_refuses_gets_text_and_event_later():
    class Refusing(InMemoryFileStore):
        refuses = True

        def create(self, path, contents):
            if self.refuses and "/blobs/" in path:
                raise StorageError("the disk is full")
            super().create(path, contents)

    store = Refusing()
    stream = EventStream(store, "s1", max_inline_chars=SMALL_LIMIT_CHARS)
    stream.add_event(FileWriteAction("a.txt", LONG), "agent")
    with pytest.raises(StorageError, match="the disk is full"):
        stream.flush(30)
    assert not any("/events/" in path for path in store.files)
    store.refuses = False
    stream.flush(30)
    assert stream.get_event(0).content == LONG
    stream.close()


def record_write(stream, text):
    action = stream.add_event(FileWriteAction("big.txt", text), "agent")
    stream.add_event(FileWriteObservation("", path="big.txt", cause=action.id), "environment")
    stream.flush(60)


@pytest.mark.thorough
def test_a_replay_writes_the_same_bytes(tmp_path, store):
    text = "0123456789abcde\n" * (50 * 1024 * 1024 // 16)
    stream = EventStream(store, "s1")
    record_write(stream, text)
    assert len(store.read_bytes("sessions/s1/events/0.json")) < 50_000
    (tmp_path / "again").mkdir()
    steps = Replayer(Settings(), str(tmp_path)).run(stream, folder=str(tmp_path / "again"))
    stream.close()
    assert [step.kind for step in steps] == ["write"]
    written = (tmp_path / "again" / "big.txt").read_bytes()
    assert hashlib.sha256(written).hexdigest() == digest_of(text)


def test_a_replay_skips_events_that_it_cannot_reproduce(tmp_path, store, stream):
    record_write(stream, LONG)
    store.delete(f"sessions/s1/blobs/{digest_of(LONG)}")
    (step,) = Replayer(Settings(), str(tmp_path)).run(stream, folder=str(tmp_path))
    assert step.result == "skipped"
    assert "is missing" in step.before
    assert not (tmp_path / "big.txt").exists()
