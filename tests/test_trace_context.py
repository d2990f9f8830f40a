"""Environment variables of a trace, and their end."""

from __future__ import annotations

import os

from oh_jupyter.trace_context import in_environment, lasting_environment, trace_variables

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_names_are_those_of_environment_carriers() -> None:
    actor = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2", "client": "c"}
    assert trace_variables(actor) == {"TRACEPARENT": PARENT, "TRACESTATE": "a=1", "BAGGAGE": "b=2"}
    assert trace_variables({}) == {}


def test_previous_values_return_but_changed_ones_stay(monkeypatch) -> None:
    monkeypatch.setenv("BAGGAGE", "mine")
    monkeypatch.delenv("TRACEPARENT", raising=False)
    monkeypatch.delenv("TRACESTATE", raising=False)
    with in_environment({"TRACEPARENT": "1", "BAGGAGE": "2", "TRACESTATE": "3"}):
        assert os.environ["BAGGAGE"] == "2"
        assert lasting_environment()["BAGGAGE"] == "mine"
        assert "TRACEPARENT" not in lasting_environment()
        os.environ["TRACESTATE"] = "changed"
        assert lasting_environment()["TRACESTATE"] == "changed"
    assert "TRACEPARENT" not in os.environ
    assert (os.environ.pop("TRACESTATE"), os.environ["BAGGAGE"]) == ("changed", "mine")


def test_a_cell_inside_another_one(monkeypatch) -> None:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    with in_environment({"TRACEPARENT": "outer"}):
        with in_environment({"TRACEPARENT": "inner"}):
            assert os.environ["TRACEPARENT"] == "inner"
        assert os.environ["TRACEPARENT"] == "outer"
        assert "TRACEPARENT" not in lasting_environment()
    assert "TRACEPARENT" not in os.environ
