import json
import os
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from oh_jupyter.errors import RuntimeClosedError, StorageError, StorePathError, WireError
from oh_jupyter.events import (
    CmdOutputObservation,
    CmdRunAction,
    FileReadObservation,
    MCPAction,
    MessageAction,
    NullAction,
)
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import to_wire
from oh_jupyter.storage import InMemoryFileStore, LocalFileStore


@pytest.fixture
def store(tmp_path):
    return LocalFileStore(str(tmp_path))


@pytest.fixture
def stream(store):
    with_threads = EventStream(store, "s1")
    yield with_threads
    with_threads.close()


class StoppableStore(InMemoryFileStore):
    """A store whose writes wait for ``gate``, and fail while ``broken``."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False

    def write(self, path, contents):
        assert self.gate.wait(60)
        if self.broken:
            raise StorageError("the disk is full")
        super().write(path, contents)

    @property
    def events(self):
        """The texts of the events that were written."""
        return [text for path, text in self.files.items() if "/events/" in path]


def test_an_event_gets_its_place(stream):
    before = datetime.now()
    action = stream.add_event(CmdRunAction("ls"), "agent")
    observation = CmdOutputObservation("out", command="ls")
    observation.cause = action.id
    assert stream.add_event(observation, "environment") is observation
    assert (action.id, action.source, observation.id) == (0, "agent", 1)
    assert before <= datetime.fromisoformat(action.timestamp) <= datetime.now()
    assert stream.latest_id == 1


def test_the_files_are_those_of_openhands(stream, store):
    action = stream.add_event(CmdRunAction("ls"), "agent")
    observation = CmdOutputObservation("out", command="ls")
    observation.cause = action.id
    stream.add_event(observation, "environment")
    stream.flush()
    assert store.list("sessions/s1/events") == [
        "sessions/s1/events/0.json",
        "sessions/s1/events/1.json",
    ]
    written = json.loads(store.read("sessions/s1/events/1.json"))
    assert written == to_wire(observation)
    assert {name: written[name] for name in ("id", "source", "cause", "observation")} == {
        "id": 1,
        "source": "environment",
        "cause": 0,
        "observation": "run",
    }
    EventStream(store, "s2", user_id="u1").add_event(MessageAction("hi"), "user")
    other = EventStream(store, "s3", user_id="u1")
    other.add_event(MessageAction("hi"), "user")
    other.close()
    assert store.list("users/u1/conversations/s3/events") == [
        "users/u1/conversations/s3/events/0.json"
    ]


def test_a_session_is_continued(stream, store):
    for n in range(12):
        stream.add_event(MessageAction(str(n)), "user")
    stream.flush()
    store.write("sessions/s1/events/notes.txt", "no event")
    store.write("sessions/s1/events/99.json.bak", "no event")
    again = EventStream(store, "s1")
    assert again.latest_id == 11
    assert again.add_event(MessageAction("next"), "user").id == 12
    again.close()


def test_events_are_readable_before_and_after_they_are_written():
    store = StoppableStore()
    store.gate.clear()
    stream = EventStream(store, "s")
    stream.add_event(MessageAction("first"), "user")
    stream.add_event(MessageAction("second"), "agent")
    assert [event.content for event in stream.search()] == ["first", "second"]
    assert stream.get_event(1).source == "agent"
    assert store.files == {}
    store.gate.set()
    stream.flush()
    assert len(store.events) == 2
    assert [event.content for event in stream.search()] == ["first", "second"]
    assert stream.get_event(1).source == "agent"
    stream.close()


def test_adding_never_waits_for_the_store():
    store = StoppableStore()
    store.gate.clear()
    stream = EventStream(store, "s")
    for n in range(100):
        stream.add_event(MessageAction(str(n)), "user")
    assert store.events == []
    with pytest.raises(StorageError, match=r"events from 0 on are not written"):
        stream.flush(timeout=0.01)
    store.gate.set()
    stream.flush()
    assert len(store.events) == 100
    stream.close()


def test_a_recorded_event_does_not_change_later():
    store = StoppableStore()
    store.gate.clear()
    stream = EventStream(store, "s")
    seen = []
    stream.subscribe(seen.append)
    action = MCPAction("tool", {"key": ["before"]})
    stream.add_event(action, "agent")
    action.name = "changed"
    action.arguments["key"].append("after")
    action.id = 77
    store.gate.set()
    stream.flush()
    written = json.loads(store.read("sessions/s/events/0.json"))["args"]
    assert (written["name"], written["arguments"]) == ("tool", {"key": ["before"]})
    assert stream.get_event(0).arguments == {"key": ["before"]}
    assert (seen[0].id, seen[0].name, seen[0].arguments) == (0, "tool", {"key": ["before"]})
    stream.close()


def test_a_store_that_refuses_loses_nothing(caplog):
    store = StoppableStore()
    store.broken = True
    stream = EventStream(store, "s")
    for n in range(5):
        stream.add_event(MessageAction(str(n)), "user")
    with pytest.raises(StorageError, match="disk is full") as caught:
        stream.flush()
    assert "from 0 on" in str(caught.value)
    assert [event.content for event in stream.search()] == list("01234")
    store.broken = False
    stream.add_event(MessageAction("5"), "user")
    stream.flush()
    assert [json.loads(text)["id"] for text in store.events] == [0, 1, 2, 3, 4, 5]
    assert caplog.text.count("not written yet") == 1
    stream.close()


def test_many_threads_add(stream, store):
    seen = []
    stream.subscribe(seen.append)

    def add(worker):
        return [stream.add_event(MessageAction(f"{worker} {n}"), "user").id for n in range(50)]

    with ThreadPoolExecutor(8) as pool:
        ids = [id for some in pool.map(add, range(8)) for id in some]
    stream.flush()
    assert sorted(ids) == list(range(400))
    assert [event.id for event in seen] == list(range(400))
    assert len(store.list("sessions/s1/events")) == 400
    for worker in range(8):
        mine = [e.content for e in stream.search() if e.content.startswith(f"{worker} ")]
        assert mine == [f"{worker} {n}" for n in range(50)]


def test_search(stream):
    stream.add_event(CmdRunAction("ls"), "agent")
    stream.add_event(CmdOutputObservation("out"), "agent")
    for n in range(250):
        stream.add_event(MessageAction(str(n)), "user")
    stream.flush()
    assert [event.kind for event in stream.search(kinds={"run"})] == ["run", "run"]
    assert [event.id for event in stream.search(start=249)] == [249, 250, 251]
    assert [event.id for event in stream.search(1, 4)] == [1, 2, 3]
    assert [event.id for event in stream.search(limit=2, kinds=["message"])] == [2, 3]
    assert [event.id for event in stream.search(-5, 1000)] == list(range(252))
    assert stream.search(limit=0) == stream.search(5, 5) == stream.search(start=1000) == []


def test_missing_and_damaged_events(stream, store):
    stream.add_event(MessageAction("0"), "user")
    stream.flush()
    for id in (1, -1):
        with pytest.raises(FileNotFoundError):
            stream.get_event(id)
    for id, text in enumerate(['{"action": "reca', "[]"]):
        store.write(f"sessions/damaged/events/{id}.json", text)
    damaged = EventStream(store, "damaged")
    for id in (0, 1):
        with pytest.raises(StorageError, match=rf"{id}\.json"):
            damaged.get_event(id)
    with pytest.raises(StorageError, match=r"0\.json"):
        damaged.search()


def test_gaps_and_unknown_types_of_other_programs(store):
    store.write("sessions/s/events/0.json", json.dumps({"action": "of_the_future", "args": {}}))
    store.write(
        "sessions/s/events/4.json", json.dumps({"action": "message", "args": {"content": "hi"}})
    )
    stream = EventStream(store, "s")
    assert [event.content for event in stream.search()] == ["hi"]
    with pytest.raises(WireError, match="of_the_future"):
        stream.get_event(0)


def test_subscribers(stream, caplog):
    seen, others = [], []
    stream.add_event(MessageAction("before"), "user")

    def fail(event):
        raise ZeroDivisionError(event.id)

    stream.subscribe(fail)
    unsubscribe = stream.subscribe(lambda event: seen.append(event.content))
    stream.subscribe(lambda event: others.append(event.id))
    stream.add_event(MessageAction("one"), "user")
    stream.add_event(MessageAction("two"), "user")
    stream.flush()
    unsubscribe()
    unsubscribe()
    stream.add_event(MessageAction("three"), "user")
    stream.flush()
    assert seen == ["one", "two"]
    assert others == [1, 2, 3]
    assert caplog.text.count("A subscriber failed") == 3


def test_wire_subscribers_get_the_stored_form(stream):
    stream.mask(["hunter2"])
    wires = []
    unsubscribe = stream.subscribe_to_wires(wires.append)
    stream.add_event(MessageAction("hunter2"), "user")
    unsubscribe_events = stream.subscribe(lambda event: None)
    stream.add_event(MessageAction("two"), "user")
    stream.flush()
    unsubscribe_events()
    unsubscribe()
    stream.add_event(MessageAction("three"), "user")
    stream.flush()
    assert wires == [to_wire(event) for event in stream.search(end=2)]
    assert wires[0]["args"]["content"] == "<secret_hidden>"


def test_a_subscriber_may_use_the_stream(stream):
    seen = []

    def answer(event):
        seen.append((event.id, stream.latest_id, stream.get_event(event.id).content))
        if event.content == "question":
            stream.add_event(MessageAction("answer"), "agent")
            stream.flush()
            stream.subscribe(lambda event: None)()

    stream.subscribe(answer)
    stream.add_event(MessageAction("question"), "user")
    stream.flush()
    stream.flush()
    assert seen == [(0, 0, "question"), (1, 1, "answer")]


SECRET = 'p"ä\\ss'


@pytest.mark.parametrize("late", [False, True])
def test_secrets_are_masked_everywhere(late):
    store = StoppableStore()
    stream = EventStream(store, "s")
    seen = []
    stream.subscribe(seen.append)
    events = [
        CmdRunAction(f"export X={SECRET} Y=tok-123"),
        MCPAction("tool", {"a": {SECRET: [f"{SECRET}!", 5, "tok-123456"]}}),
        FileReadObservation(json.dumps({"key": SECRET}), path="/f"),
        MessageAction("nothing to hide"),
    ]
    if late:
        store.gate.clear()
        stream.add_event(NullAction(), "agent")  # the one that is being written meanwhile
    else:
        stream.mask(["tok-123", SECRET, "", "tok-123456"])
    for event in events:
        stream.add_event(event, "agent")
    if late:
        stream.mask(["tok-123", SECRET, "", "tok-123456"])
        assert stream.get_event(1).command == "export X=<secret_hidden> Y=<secret_hidden>"
        store.gate.set()
    stream.flush()
    for text in store.events:
        assert "tok-123" not in text
        assert SECRET not in str(json.loads(text))
    recorded = stream.search(start=int(late))
    assert recorded[0].command == "export X=<secret_hidden> Y=<secret_hidden>"
    hidden = "<secret_hidden>"
    assert recorded[1].arguments == {"a": {hidden: [f"{hidden}!", 5, hidden]}}
    assert json.loads(recorded[2].content) == {"key": hidden}
    assert recorded[3].content == "nothing to hide"
    if not late:
        assert [event.message for event in seen] == [event.message for event in recorded]
    assert events[0].command == f"export X={SECRET} Y=tok-123"
    assert SECRET in events[1].arguments["a"]
    stream.close()


def test_a_secret_does_not_hide_an_events_type(stream):
    stream.mask(["run", "agent", "command", "0"])
    stream.add_event(CmdRunAction("run 0"), "agent")
    stream.flush()
    event = stream.get_event(0)
    assert (event.kind, event.source, event.id) == ("run", "agent", 0)
    assert event.command == "<secret_hidden> <secret_hidden>"


@pytest.mark.parametrize("user_id", [None, "ann"])
def test_a_session_is_described_as_openhands_lists_it(store, user_id):
    before = datetime.now(UTC)
    stream = EventStream(store, "s1", user_id=user_id)
    folder = "sessions/s1" if user_id is None else "users/ann/conversations/s1"
    assert not store.exists(f"{folder}/metadata.json")  # nothing has happened in it yet
    stream.add_event(NullAction(), "agent")
    stream.flush()
    metadata = json.loads(store.read(f"{folder}/metadata.json"))
    assert before <= datetime.fromisoformat(metadata.pop("created_at")) <= datetime.now(UTC)
    assert metadata == {
        "conversation_id": "s1",
        "selected_repository": None,
        "user_id": user_id,
        "title": "oh_jupyter s1",
    }
    stream.close()


def test_the_description_that_a_session_has_stays(store):
    store.write("sessions/s1/metadata.json", '{"title": "mine"}')
    stream = EventStream(store, "s1")
    stream.add_event(NullAction(), "agent")
    stream.close()
    assert store.read("sessions/s1/metadata.json") == '{"title": "mine"}'
    assert store.list("sessions/s1/events") == ["sessions/s1/events/0.json"]


@pytest.mark.skipif(not hasattr(os, "fchmod"), reason="the system knows no such permissions")
def test_a_session_is_readable_only_by_its_owner(tmp_path):
    before = os.umask(0)
    try:
        store = LocalFileStore(str(tmp_path / "store"))
        (tmp_path / "store" / "sessions" / "s1").mkdir(parents=True)  # by another program
        stream = EventStream(store, "s1")
        for _ in range(2):
            stream.add_event(NullAction(), "agent")
        stream.close()
    finally:
        os.umask(before)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (tmp_path / "store" / "sessions").rglob("*")
    }
    folders, files = ("s1", "events"), ("metadata.json", "0.json", "1.json")
    assert modes == dict.fromkeys(folders, 0o700) | dict.fromkeys(files, 0o600)


def test_text_that_has_no_utf_8_form(stream):
    stream.add_event(CmdOutputObservation("bad \udcff byte"), "agent")
    stream.flush()
    assert stream.get_event(0).content == "bad \udcff byte"


@pytest.mark.parametrize("sid", ["", "..", "a/b", None])
def test_ids_of_sessions(store, sid):
    with pytest.raises(StorePathError, match="not a valid session"):
        EventStream(store, sid)


def test_unknown_source(stream):
    with pytest.raises(WireError, match="nobody"):
        stream.add_event(MessageAction("x"), "nobody")
    assert stream.latest_id == -1


def test_closing_may_be_followed_by_more(stream, store):
    seen = []
    stream.subscribe(lambda event: seen.append(event.id))
    for n in range(3):
        stream.add_event(MessageAction(str(n)), "user")
        stream.close()
        assert len(store.list("sessions/s1/events")) == n + 1
    assert seen == [0, 1, 2]


def test_exit_writes_pending_events(store):
    program = (
        "import sys\n"
        "from oh_jupyter.events import MessageAction\n"
        "from oh_jupyter.events.stream import EventStream\n"
        "from oh_jupyter.storage import LocalFileStore\n"
        "stream = EventStream(LocalFileStore(sys.argv[1]), 's')\n"
        "for n in range(500): stream.add_event(MessageAction(str(n)), 'user')\n"
        "raise SystemExit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, store.root])
    assert done.returncode == 3
    assert len(store.list("sessions/s/events")) == 500


def test_events_recorded_at_exit_are_written_and_delivered(store):
    """From Python 3.12 on no thread can be started then."""
    program = (
        "import atexit, sys\n"
        "from oh_jupyter.events import MessageAction\n"
        "from oh_jupyter.events.stream import EventStream\n"
        "from oh_jupyter.storage import LocalFileStore\n"
        "stream = EventStream(LocalFileStore(sys.argv[1]), 's')\n"
        "stream.subscribe(lambda event: print(event.id, flush=True))\n"
        "def record():\n"
        "    for n in range(20): stream.add_event(MessageAction(str(n)), 'user')\n"
        "atexit.register(record)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, store.root], capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == ([str(n) for n in range(20)], "")
    assert len(store.list("sessions/s/events")) == 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_leaves_the_log_alone(stream):
    stream.add_event(MessageAction("parent"), "user")
    child = os.fork()
    if not child:
        try:
            stream.add_event(MessageAction("child"), "user")
        except RuntimeClosedError:
            stream.close()
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert stream.add_event(MessageAction("parent again"), "user").id == 1


def test_recording_is_quick(stream):
    stream.subscribe(lambda event: None)
    times = []
    for n in range(300):
        started = time.thread_time()
        stream.add_event(CmdRunAction(f"echo {n}"), "agent")
        times.append(time.thread_time() - started)
    stream.flush()
    assert sorted(times)[150] < 0.001
