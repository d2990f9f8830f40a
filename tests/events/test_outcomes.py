"""Outcomes of Actions, as Observations and on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from oh_jupyter.errors import WireError
from oh_jupyter.events import (
    OBSERVATIONS,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    IPythonRunCellObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.events.wire import observation_from_wire, outcome_of, to_wire

USUAL = {"error": "failed", "user_rejected": "rejected"}


@pytest.mark.parametrize("kind", sorted(OBSERVATIONS))
def test_the_usual_outcome_of_a_type_is_not_sent(kind: str) -> None:
    usual = USUAL.get(kind, "done")
    observation = OBSERVATIONS[kind]("")
    wire = to_wire(observation)
    assert observation.outcome == outcome_of(wire) == usual
    assert "oh_jupyter" not in wire
    assert observation_from_wire(wire).outcome == usual


@pytest.mark.parametrize(
    "observation",
    [
        FileEditObservation("ERROR:\nNo match.", outcome="failed"),
        FileReadObservation("ERROR:\nNo file.", impl_source="oh_aci", outcome="failed"),
        CmdOutputObservation("ERROR: Nothing runs.", outcome="failed", reason_code="nothing_runs"),
        IPythonRunCellObservation("NameError", outcome="failed"),
        BrowserOutputObservation("", error=True, outcome="timed_out"),
        ErrorObservation("It was cancelled.", outcome="cancelled"),
        UserRejectObservation("No.", outcome="timed_out", reason_code="unanswered", why="Nobody."),
    ],
)
def test_other_outcomes_are_sent_beside_the_protocol(observation: Observation) -> None:
    wire = to_wire(observation)
    assert outcome_of(wire) == observation.outcome
    assert not {"outcome", "reason_code", "why"} & wire["extras"].keys()
    received = observation_from_wire(wire)
    for name in ("outcome", "reason_code"):
        assert getattr(received, name) == getattr(observation, name)
    assert getattr(received, "why", "") == getattr(observation, "why", "")


def test_a_log_of_openhands_has_no_outcomes() -> None:
    log: dict[str, Any] = {"observation": "error", "content": "No.", "extras": {"error_id": ""}}
    assert outcome_of(log) == observation_from_wire(log).outcome == "failed"
    page = {"observation": "browse", "content": "", "extras": {"error": True}}
    assert outcome_of(page) == observation_from_wire(page).outcome == "failed"
    assert outcome_of({"observation": "of a later version"}) == "done"


def test_an_unknown_outcome_is_an_error() -> None:
    wire = {**to_wire(FileEditObservation("")), "oh_jupyter": {"outcome": "perhaps"}}
    with pytest.raises(WireError, match=r"'extras\.outcome' must be one of 'done'"):
        observation_from_wire(wire)


def test_the_reason_of_a_failure_is_without_the_agents_literal() -> None:
    assert FileEditObservation("ERROR:\nNo match.\n", outcome="failed").failure == "No match."
    assert ErrorObservation("ERROR: There is no directory.").failure == "There is no directory."
    assert ErrorObservation("File not found: a").failure == "File not found: a"
    assert FileReadObservation("ERROR:\na line of a log").failure == ""
