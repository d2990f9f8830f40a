"""Two processes that record to one session, and readers beside them."""

import contextlib
import json
import subprocess
import sys
import threading

from oh_jupyter.events import CmdOutputObservation, CmdRunAction, MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import FileStore, InMemoryFileStore, LocalFileStore

PROGRAM = """
import sys
from oh_jupyter.events import MessageAction
from oh_jupyter.events.stream import EventStream
from oh_jupyter.storage import LocalFileStore
stream = EventStream(LocalFileStore(sys.argv[1]), "s")
events = []
for n in range(150):
    events.append(stream.add_event(MessageAction(f"{sys.argv[2]} {n}"), "user"))
    if n % 10 == 0:
        stream.flush()
stream.flush()
print(*[event.id for event in events])
"""


def test_two_processes_lose_nothing_and_leave_no_gaps(tmp_path):
    store = LocalFileStore(str(tmp_path))
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path), name], stdout=subprocess.PIPE, text=True
        )
        for name in "ab"
    ]
    ids = [list(map(int, worker.communicate(timeout=60)[0].split())) for worker in workers]
    assert sorted(ids[0] + ids[1]) == list(range(300))
    assert all(mine == sorted(mine) for mine in ids)
    stream = EventStream(store, "s")
    events = stream.search()
    assert [event.id for event in events] == list(range(300))
    for name, mine in zip("ab", ids, strict=True):
        contents = [event.content for event in events if event.content.startswith(name)]
        assert contents == [f"{name} {n}" for n in range(150)]
        assert [event.id for event in events if event.content.startswith(name)] == mine
    for id in (0, 150, 299):
        assert json.loads(store.read(f"sessions/s/events/{id}.json"))["id"] == id
    stream.close()


def test_the_cause_moves_with_its_action():
    store = InMemoryFileStore()
    mine = EventStream(store, "s")
    theirs = EventStream(store, "s")
    for n in range(3):
        theirs.add_event(MessageAction(str(n)), "user")
    theirs.flush()
    action = mine.add_event(CmdRunAction("ls"), "agent")
    observation = CmdOutputObservation("out", command="ls")
    observation.cause = action.id
    mine.add_event(observation, "agent")
    mine.flush()
    assert (action.id, observation.id, observation.cause) == (3, 4, 3)
    assert mine.get_event(4).cause == 3
    assert theirs.get_event(4).cause == 3
    assert mine.add_event(MessageAction("next"), "user").id == 5
    mine.close()
    theirs.close()


def test_a_reader_sees_events_of_another_process(tmp_path):
    store = LocalFileStore(str(tmp_path))
    writer, reader = EventStream(store, "s"), EventStream(store, "s")
    assert reader.search() == []
    for n in range(3):
        writer.add_event(MessageAction(str(n)), "user")
        writer.flush()
        assert [event.content for event in reader.search()] == [str(k) for k in range(n + 1)]
    assert reader.latest_id == 2
    writer.close()
    reader.close()


def test_a_store_that_reports_a_success_as_failed():
    class Flaky(InMemoryFileStore):
        failures = 1

        def write(self, path, contents):
            super().write(path, contents)
            if self.failures and "/events/" in path:
                self.failures -= 1
                raise ConnectionError("the answer got lost")

    stream = EventStream(Flaky(), "s")
    event = stream.add_event(MessageAction("once"), "user")
    with contextlib.suppress(OSError):  # whether the error is seen is a matter of time
        stream.flush()
    stream.flush()
    assert event.id == 0
    assert [event.content for event in stream.search()] == ["once"]
    stream.close()


def test_a_store_with_the_four_methods_only():
    class Small(FileStore):
        def __init__(self):
            self.files = {}
            self.lock = threading.Lock()

        def write(self, path, contents):
            self.files[path] = contents

        def read(self, path):
            if path not in self.files:
                raise FileNotFoundError(path)
            text = self.files[path]
            return text if isinstance(text, str) else text.decode()

        def list(self, path):
            return [name for name in self.files if name.startswith(path)]

    store = Small()
    stream = EventStream(store, "s")
    stream.add_event(MessageAction("hi"), "user")
    stream.flush()
    assert [event.content for event in EventStream(store, "s").search()] == ["hi"]
    stream.close()
