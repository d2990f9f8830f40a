"""Questions of an agent to the person, answered by their id as the panel and the magic do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from guest_runtime import Guests

from oh_jupyter.agents.permissions import form_of
from oh_jupyter.errors import AnswerError
from oh_jupyter.events import MessageAction
from oh_jupyter.runtime.confirmation import Decision, PendingAction

FIELDS = {
    "region": {"type": "string", "title": "Region", "enum": ["eu", "us"], "required": True},
    "copies": {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
    "share": {"type": "number"},
    "public": {"type": "boolean"},
    "tags": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "First"}]}},
}


def question(guests: Guests, fields: Mapping[str, Any] | str = FIELDS) -> tuple[Any, int]:
    """Start a turn that asks; return its future, and the id of the question."""
    asked = threading.Event()
    guests.runtime.executor.confirmations.on_question(asked.set)
    text = fields if isinstance(fields, str) else json.dumps(fields)
    turn = guests.start(f"question {text}")
    assert asked.wait(60)
    (id,) = guests.runtime.executor.confirmations.waiting
    return turn, id


def decide(guests: Guests, id: int, decision: Decision) -> None:
    async def resolve() -> None:
        await guests.runtime.executor.confirmations.resolve(id, decision)

    guests.call(resolve())


def test_values_reach_the_agent(guests: Guests) -> None:
    turn, id = question(guests)
    pending = guests.runtime.executor.confirmations.waiting[id]
    assert isinstance(pending, PendingAction)
    assert (pending.agent, pending.is_question) == ("Scripted", True)
    values = {"region": "eu", "share": "0.5", "public": "yes", "tags": "first"}
    decide(guests, id, Decision(True, values=values))
    expected = {"copies": 2, "public": True, "region": "eu", "share": 0.5, "tags": ["a"]}
    assert turn.result(60).text.strip() == f"The answer: accept {json.dumps(expected)}."
    events = [event for event in guests.log() if not isinstance(event, MessageAction)]
    logged = "".join(str(vars(event)) for event in events)
    assert "Region" in logged
    assert "The user answered." in logged
    assert "'eu'" not in logged  # it may be confidential


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, r"Region is required \[eu/us\]"),
        ({"region": "asia"}, r"Region cannot be 'asia' \[eu/us\]"),
        ({"region": "eu", "copies": "many"}, "copies cannot be 'many'"),
        ({"region": "eu", "copies": 4}, "copies must be at most 3"),
        ({"region": "eu", "copies": 0.5}, "copies cannot be 0.5"),
        ({"region": "eu", "share": "nan"}, "share cannot be 'nan'"),
        ({"region": "eu", "public": "perhaps"}, "public cannot be 'perhaps'"),
        ({"region": "eu", "tags": ["b"]}, "tags cannot be"),
        ({"colour": "red"}, "no value 'colour'. Values: region, copies"),
    ],
    ids=lambda each: "" if isinstance(each, str) else ",".join(map(str, each.values())) or "empty",
)
def test_values_that_do_not_fit_leave_the_question_open(values, words) -> None:
    from acp.schema import ElicitationSchema

    from oh_jupyter.runtime.form import answers

    fields = {name: {k: v for k, v in f.items() if k != "required"} for name, f in FIELDS.items()}
    schema = ElicitationSchema.model_validate({"properties": fields, "required": ["region"]})
    with pytest.raises(AnswerError, match=words):
        answers(form_of(schema), values)


def test_an_invalid_answer_can_be_given_again(guests: Guests) -> None:
    turn, id = question(guests)
    with pytest.raises(AnswerError):
        decide(guests, id, Decision(True))
    decide(guests, id, Decision(True, values={"region": "us"}))
    assert '"region": "us"' in turn.result(60).text


def test_the_person_declines(guests: Guests) -> None:
    turn, id = question(guests)
    decide(guests, id, Decision(False))
    assert turn.result(60).text.strip() == "The answer: decline null."


def test_no_answer_in_time(make_guests: Callable[..., Guests]) -> None:
    guests = make_guests(confirmation="never", confirmation_timeout=0.2)
    turn = guests.prompt(f"question {json.dumps(FIELDS)}")
    assert turn.text.strip() == "The answer: cancel null."


def test_a_page_to_open(guests: Guests) -> None:
    turn, id = question(guests, "https://example.org/login")
    pending = guests.runtime.executor.confirmations.waiting[id]
    assert "https://example.org/login" in str(vars(pending.action))
    decide(guests, id, Decision(True))
    assert turn.result(60).text.strip() == "The answer: accept {}."


def test_an_interrupt_withdraws_the_question(guests: Guests) -> None:
    turn, _ = question(guests)
    guests.runtime.submit(_interrupt(guests)).result(60)
    assert turn.result(60).stop_reason == "cancelled"
    assert not guests.runtime.executor.confirmations.waiting


async def _interrupt(guests: Guests) -> None:
    guests.agents.interrupt("scripted")


def test_a_type_that_acp_does_not_define(guests: Guests) -> None:
    turn = guests.prompt('question {"x": {"type": "colour"}}')
    assert "unknown type 'colour'" in turn.text
