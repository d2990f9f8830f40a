"""Origin of requests: names for people, owners of turns, and JSON."""

from __future__ import annotations

import pytest

from oh_jupyter.errors import WireError
from oh_jupyter.events import Actor, CmdRunAction
from oh_jupyter.events.fields import check_fields


@pytest.mark.parametrize(
    ("actor", "name"),
    [
        (None, ""),
        ({"user": "ada", "session": "0a1b2c3d4e5f"}, ""),
        ({"persona": "jupyter-ai::personas::Claude", "client": "claude-code"}, "Claude"),
        ({"client": "Claude Code", "guest": "claude-0a1b2c3d"}, "Claude"),
        ({"client": "Claude Code"}, "Claude Code"),
        ({"client": "REST (nightly)"}, "REST (nightly)"),
    ],
)
def test_an_agent_has_a_name_for_people(actor, name) -> None:
    assert Actor.from_json(actor).name == name


def test_an_actor_equals_its_json() -> None:
    assert not Actor()
    assert Actor(user="ada")
    wire = {"user": "ada", "client": "c", "traceparent": "00-1"}
    assert Actor.from_json({**wire, "session": 3, "of a later version": "x"}).to_json() == wire
    with pytest.raises(WireError, match="'actor' must be a JSON object, not 'ada'"):
        Actor.from_json("ada")


def test_actions_that_are_made_here_may_name_their_actor_as_json() -> None:
    action = CmdRunAction("true", actor={"guest": "claude-01234567"})  # type: ignore[arg-type]
    check_fields(action)
    assert action.actor == Actor(guest="claude-01234567")


def test_turns_belong_to_sessions_and_guests() -> None:
    first = Actor(session="1", client="one")
    assert first.owner == Actor(session="1", client="another", user="ada").owner
    assert first.owner != Actor(session="2").owner
    assert Actor(client="one", user="ada").owner == ""
    assert (Actor(chat="c", persona="p").conversation, first.conversation) == ("c", "1")
