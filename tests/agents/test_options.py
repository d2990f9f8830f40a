"""Options of an agent's session, and the list of its conversations."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from guest_runtime import BROKEN, SCRIPTED, Guests, command

from oh_jupyter.errors import AgentError

pytestmark = pytest.mark.thorough

FIRST = "Set: mode default, model small, reasoning low, web False."


@pytest.fixture
def guests(make_guests: Callable[..., Guests], request: pytest.FixtureRequest) -> Guests:
    """A runtime whose scripted agent offers what the test's parameter names."""
    arguments = getattr(request, "param", ("--options",))
    line = " ".join([command(SCRIPTED), *arguments])
    return make_guests(confirmation="never", agents={"scripted": line})


def said(guests: Guests, prompt: str = "options", **options: Any) -> str:
    return guests.prompt(prompt, **options).text.strip()


@pytest.mark.parametrize(
    "guests",
    [("--options",), ("--options", "--forks")],
    ids=["one session", "forks"],
    indirect=True,
)
def test_options_stay_for_later_prompts(guests: Guests) -> None:
    assert said(guests) == FIRST
    wanted = {"mode": "plan", "effort": "The high", "web": "on"}
    chosen = "Set: mode plan, model small, reasoning high, web True."
    assert said(guests, options=wanted) == chosen
    assert said(guests) == chosen
    assert said(guests, new=True) == FIRST


@pytest.mark.parametrize("guests", [("--modes",)], indirect=True)
def test_an_agent_with_the_older_modes(guests: Guests) -> None:
    assert said(guests, options={"mode": "Plan"}).startswith("Set: mode plan")
    assert said(guests, "switch mode default\noptions").startswith("Set: mode default")
    session = guests.agents.at_work["scripted"]
    assert [(each.id, each.current) for each in session.options] == [("mode", "default")]
    with pytest.raises(AgentError, match=r"has no option 'model'\. Its options: mode"):
        said(guests, options={"model": "large"})


def test_a_change_by_the_agent_is_kept(guests: Guests) -> None:
    said(guests, options={"mode": "plan"})
    said(guests, "switch mode default")
    session = guests.agents.at_work["scripted"]
    mode = session.option("mode")
    assert mode is not None
    assert mode.current == "default"
    assert guests.agents.choices("model") == ["small", "large"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"colour": "red"}, "no option 'colour'. Its options: mode, model, reasoning, web"),
        ({"mode": "plam"}, "no mode 'plam'. Choose one of: default, plan"),
        ({"web": "maybe"}, "no web 'maybe'. Choose one of: on, off"),
        ({"mode": "plan", "model": "large"}, "the large model cannot plan"),
    ],
    ids=["option", "value", "switch", "rejected"],
)
def test_an_option_that_cannot_be_set(guests: Guests, wanted, words) -> None:
    with pytest.raises(AgentError, match=words):
        said(guests, options=wanted)
    assert said(guests, "say well").strip() == "well"  # the agent stays


def test_how_full_the_context_is(guests: Guests) -> None:
    turn = guests.prompt("say x")
    assert (turn.context_tokens, turn.context_size) == (len("say x"), 1000)


def test_conversations_are_listed_and_resumed(guests: Guests) -> None:
    said(guests, "say first")
    (first,) = guests.call(guests.agents.list_sessions("scripted"))
    assert first.title == "say first"
    said(guests, "say more")
    assert [each.title for each in guests.call(guests.agents.list_sessions("scripted"))] == [
        "say first"
    ]
    # This agent's process forgets, so the resumed conversation has only its number.
    said(guests, "say again", resume=first.session_id)
    (resumed,) = guests.call(guests.agents.list_sessions("scripted"))
    assert (resumed.session_id, resumed.title) == (first.session_id, "say again")


@pytest.mark.parametrize("guests", [("--no-sessions",)], indirect=True)
def test_an_agent_without_a_list(guests: Guests) -> None:
    with pytest.raises(AgentError, match="scripted does not list its conversations"):
        guests.call(guests.agents.list_sessions("scripted"))


def test_an_agent_that_does_not_delete_conversations(guests: Guests) -> None:
    with pytest.raises(AgentError, match="scripted does not delete conversations"):
        guests.call(guests.agents.delete_session("scripted", "1"))


def test_a_conversation_is_deleted(make_guests: Callable[..., Guests], tmp_path: Path) -> None:
    deleted = tmp_path / "deleted"
    guests = make_guests(agents={"other": command(BROKEN, "deletes", str(deleted))})
    guests.call(guests.agents.delete_session("other", "old"))
    assert deleted.read_text() == "old"
    with pytest.raises(AgentError, match="is the conversation that other is having"):
        guests.call(guests.agents.delete_session("other", "s"))
    with pytest.raises(AgentError, match="No such conversation"):
        guests.call(guests.agents.delete_session("other", "missing"))


def test_further_directories(
    make_guests: Callable[..., Guests], tmp_path_factory: pytest.TempPathFactory
) -> None:
    further = tmp_path_factory.mktemp("further")
    (further / "data.txt").write_text("42")
    guests = make_guests(confirmation="never", agent_directories=(str(further),))
    assert said(guests, "folders") == f"Folders: {[str(further)]}."
    assert guests.prompt(f"read {further}/data.txt").steps[0].output == "42"
    refused = guests.prompt(f"read {further.parent}/other.txt").text
    assert "is outside of the workspace" in refused
