"""An agent that speaks only version 2 of the protocol, a draft."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

import pytest
from guest_runtime import Guests, command

from oh_jupyter.errors import AgentError
from oh_jupyter.events import CmdRunAction
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.testing import wait_until

AGENT = Path(__file__).with_name("agent_v2.py")
SDK_AGENT = Path(__file__).with_name("sdk_agent_v2.mjs")


@pytest.fixture
def guests(make_guests: Callable[..., Guests]) -> Guests:
    return make_guests(confirmation="never", agents={"scripted": command(AGENT)})


def test_a_turn_ends_when_the_agent_is_idle(guests: Guests) -> None:
    turn = guests.prompt("say one\nsay  two")
    assert (turn.text.strip(), turn.stop_reason) == ("one two", "end_turn")
    assert (turn.context_tokens, turn.context_size, turn.cost) == (10, 1000, 0.5)
    assert guests.prompt("whole more").text.strip() == "more"


def test_an_agent_that_answers_with_version_2(make_guests: Callable[..., Guests]) -> None:
    guests = make_guests(agents={"scripted": command(AGENT, "--answers-2")})
    assert guests.prompt("say hello").text.strip() == "hello"


def test_an_idle_state_before_the_prompt_is_accepted_ends_the_turn(guests: Guests) -> None:
    assert guests.prompt("say quick\nearly").text.strip() == "quick"


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_the_reason_of_the_end_is_recorded(guests: Guests, reason: str) -> None:
    assert guests.prompt(f"stop {reason}").stop_reason == reason


def test_an_unknown_reason_is_an_end(guests: Guests) -> None:
    assert guests.prompt("stop later_draft").stop_reason == "end_turn"


def test_a_turn_that_ends_with_an_error_fails(guests: Guests) -> None:
    with pytest.raises(AgentError, match="The model is overloaded"):
        guests.prompt("stop error")
    assert guests.prompt("say on").text.strip() == "on"


def test_a_prompt_that_is_not_accepted_fails(guests: Guests) -> None:
    with pytest.raises(AgentError, match="The prompt is not accepted"):
        guests.prompt("reject")
    assert guests.prompt("say on").text.strip() == "on"


def test_steps_of_a_turn_are_shown(guests: Guests) -> None:
    turn = guests.prompt("plan look\nedit /a.txt\nterminal 3 lines")
    assert [entry.content for entry in turn.plan] == ["look"]
    edit, run = turn.steps
    (diff,) = edit.diffs
    assert (diff.path, diff.old_text, diff.new_text) == ("/a.txt", "same\nold", "same\nnew")
    assert (run.title, run.status, run.output) == ("Run", "completed", "3 lines")


@pytest.mark.parametrize(("approve", "option"), [(True, "yes"), (False, "no")])
def test_a_person_decides_on_a_permission(
    make_guests: Callable[..., Guests], approve: bool, option: str
) -> None:
    guests = make_guests(confirmation="always", agents={"scripted": command(AGENT)})
    running = guests.start("ask rm -r build")
    confirmations = guests.runtime.executor.confirmations
    (id,) = wait_until(lambda: list(confirmations.waiting), what="the question")

    async def decide() -> None:
        action = confirmations.waiting[id].action
        assert isinstance(action, CmdRunAction)
        assert action.command == "rm -r build"
        confirmations.resolve(id, Decision(approve))

    guests.call(decide())
    assert running.result(60).text.strip() == f"Decision: {option}."


def test_requests_of_version_1_are_rejected(guests: Guests) -> None:
    assert guests.prompt("read /etc/hostname").text.strip() == "Refused: -32601."


def test_an_interrupt_ends_the_turn(guests: Guests) -> None:
    running = guests.start("wait")
    wait_until(lambda: "waiting" in "".join(turn.text for turn in guests.agents.turns), what="text")
    running.cancel()
    with pytest.raises(CancelledError):
        running.result(60)
    assert guests.prompt("say on").text.strip() == "on"
    assert guests.agents.turns[0].stop_reason == "cancelled"


def test_options_and_conversations(guests: Guests) -> None:
    guests.prompt("say first")
    assert guests.agents.choices("mode") == ["code", "plan"]
    guests.prompt("say second", options={"mode": "plan"})
    session = guests.agents.at_work["scripted"]
    mode = session.option("mode")
    assert mode is not None
    assert mode.current == "plan"
    (listed,) = guests.call(guests.agents.list_sessions("scripted"))
    assert listed.title == "First"
    assert guests.prompt("say again", resume="s").text.strip() == "again"


@pytest.mark.slow
def test_an_agent_of_the_official_sdk(make_guests: Callable[..., Guests], tmp_path: Path) -> None:
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("needs npm and node")
    install = [npm, "install", "--no-audit", "--no-fund", "@agentclientprotocol/sdk"]
    installed = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"the SDK cannot be installed here: {installed.stderr[-300:]}")
    program = shutil.copy(SDK_AGENT, tmp_path)
    agents = {"scripted": shlex.join([node, str(program)])}
    guests = make_guests(confirmation="never", agents=agents)
    turn = guests.prompt("say hello")
    assert (turn.text, turn.stop_reason) == ("say hello: yes", "end_turn")
