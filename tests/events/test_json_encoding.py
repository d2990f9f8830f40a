"""The JSON of events: every value that an event can have, and encoded once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation, CmdRunAction
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.stream import EventStream
from oh_jupyter.events.wire import EncodedEvent, to_wire
from oh_jupyter.storage import InMemoryFileStore


@pytest.mark.parametrize(
    "value",
    [
        "plain",
        "é 漢 \U0001f600",
        'a"b\\c\n\x00\x1f\u2028',
        "\ud800",
        2**70,
        -(2**63),
        1.5e300,
        None,
    ],
)
def test_it_reads_back_as_it_was(value) -> None:
    assert json.loads(encode_json({"value": value, "list": [value]})) == {
        "value": value,
        "list": [value],
    }


def test_other_keys_and_values_are_written_as_text() -> None:
    assert json.loads(encode_json({1: object})) == {"1": str(object)}


def test_an_event_is_encoded_once() -> None:
    event = EncodedEvent({"content": "x" * 100_000})
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(lambda _: event.json(), range(8))
    assert all(other is first for other in others)


def test_a_recorded_event_is_sent_as_it_is_and_kept_without_secrets() -> None:
    store = InMemoryFileStore()
    stream = EventStream(store, "s")
    stream.mask(["geheim"])
    stream.add_event(CmdRunAction("echo geheim"), "agent")
    observation = CmdOutputObservation("geheim", command="echo", metadata=CmdOutputMetadata())
    stream.add_event(observation, "agent")
    assert json.loads(stream.encoded(observation)) == json.loads(json.dumps(to_wire(observation)))
    stream.flush()
    assert json.loads(stream.encoded(observation))["content"] == "geheim"
    assert "geheim" not in store.read("sessions/s/events/1.json")
    stream.close()
