"""One event of every type, as OpenHands 0.62 writes it, is read and written again unchanged.

tests/contracts/openhands_events.json was written by OpenHands' own classes, without the sentences
for people.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oh_jupyter.events import ACTIONS, OBSERVATIONS
from oh_jupyter.events.wire import from_wire, to_wire

EVENTS = json.loads((Path(__file__).parents[1] / "contracts" / "openhands_events.json").read_text())


@pytest.mark.parametrize("wire", EVENTS, ids=lambda wire: str(wire.get("action", "observed")))
def test_it_survives(wire: dict[str, Any]) -> None:
    written = to_wire(from_wire(wire))
    assert isinstance(written.pop("message"), str)
    assert json.loads(json.dumps(written)) == wire


def test_there_is_one_of_every_type() -> None:
    assert {wire["action"] for wire in EVENTS if "action" in wire} == set(ACTIONS)
    assert {wire["observation"] for wire in EVENTS if "observation" in wire} == set(OBSERVATIONS)


def test_a_runtime_executes_the_actions_of_openhands() -> None:
    assert {kind for kind, cls in ACTIONS.items() if cls.runnable} == {
        *("run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive"),
        "call_tool_mcp",
    }
