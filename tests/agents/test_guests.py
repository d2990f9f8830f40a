"""Agents in a runtime: real processes, no Jupyter."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any

import psutil
import pytest
from acp.schema import PermissionOption, ToolCallStart, ToolCallUpdate
from guest_runtime import BROKEN, SCRIPTED, Guests, command

from oh_jupyter.agents.acp_client import AcpClient
from oh_jupyter.agents.commands import find_agent, known_agents
from oh_jupyter.agents.saved_sessions import saved_session
from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.errors import (
    AgentError,
    AgentNotFoundError,
    ConfirmationError,
    PolicyError,
)
from oh_jupyter.events import (
    CmdOutputObservation,
    CmdRunAction,
    FileEditAction,
    FileWriteAction,
    MessageAction,
    UserRejectObservation,
)
from oh_jupyter.kernel.control.broadcast import turn_reply
from oh_jupyter.kernel.display.live import turn_bundle
from oh_jupyter.runtime.confirmation import Decision
from oh_jupyter.runtime.rewind import Scope
from oh_jupyter.sandbox import find_engine
from oh_jupyter.testing import descendants, wait_until

MakeGuests = Callable[..., Guests]


def kinds(guests: Guests) -> list[str]:
    return [type(event).__name__ for event in guests.log()]


def wait_for(guests: Guests, condition: Callable[[Any], bool]) -> Any:
    """The first event that meets a condition, when it comes."""
    events: list[Any] = []
    seen = threading.Event()

    def look(event: Any) -> None:
        if condition(event):
            events.append(event)
            seen.set()

    unsubscribe = guests.runtime.events.subscribe(look)
    for event in guests.log():
        look(event)
    assert seen.wait(60)
    unsubscribe()
    return events[0]


# What an agent says and does.


@pytest.mark.thorough
def test_text_plan_thoughts_and_cost(guests: Guests) -> None:
    seen: list[str] = []
    turn = guests.prompt(
        "plan look; count\nthink hm\nsay hello world",
        on_change=lambda turn: seen.append(turn.text),
    )
    assert (turn.text, turn.thoughts, turn.stop_reason) == ("hello world ", "hm", "end_turn")
    assert [(entry.content, entry.status) for entry in turn.plan] == [
        ("look", "pending"),
        ("count", "pending"),
    ]
    assert (turn.cost, turn.currency) == (0.01, "USD")
    assert "hello " in seen[:-1]  # it came word by word


@pytest.mark.thorough
def test_the_conversation_is_in_the_log(guests: Guests) -> None:
    guests.prompt("say hello", context=lambda: "You are in a notebook.")
    asked, answered = guests.log()
    assert isinstance(asked, MessageAction)
    assert (asked.source, asked.content) == ("user", "say hello")
    assert (answered.source, answered.content) == ("agent", "hello ")


@pytest.mark.thorough
def test_each_part_of_a_turn_has_its_place_among_the_events(guests: Guests) -> None:
    turn = guests.prompt("prompts\nwrite one.txt: 1\nwrite two.txt: 2")
    events = {event.id: event for event in guests.log()}
    assert events[turn.first_event].content == turn.prompt
    assert len(turn.part_events) == len(turn.parts)
    edits = [id for id, event in events.items() if isinstance(event, FileEditAction)]
    before = [
        event for part, event in zip(turn.parts, turn.part_events, strict=True)
        if not isinstance(part, str) and part.diffs
    ]  # fmt: skip
    assert len(before) == len(edits) == 2
    assert turn.first_event <= before[0] < edits[0] <= before[1] < edits[1]


def test_a_following_prompt_continues_and_a_new_one_starts_afresh(guests: Guests) -> None:
    assert "prompt 1." in guests.prompt("prompts").text
    assert "prompt 2." in guests.prompt("prompts", agent=None).text
    assert "prompt 1." in guests.prompt("prompts", new=True).text
    assert guests.prompt("prompts").cost == pytest.approx(0.01)


@pytest.mark.thorough
def test_the_context_is_sent_once(guests: Guests) -> None:
    here = "You are here."
    assert guests.prompt("x", context=lambda: here).text == f"You said: {here}\n\nx"
    assert guests.prompt("y", context=lambda: here).text == "You said: y"


@pytest.mark.thorough
def test_a_file_is_written_through_the_editor_and_undone(guests: Guests) -> None:
    target = guests.folder / "deep" / "notes.txt"
    target.parent.mkdir()
    turn = guests.prompt("write deep/notes.txt: one\\ntwo\nread deep/notes.txt")
    assert target.read_text() == "one\ntwo\n"
    assert turn.steps[1].output == "one\ntwo\n"
    assert (turn.steps[0].diffs[0].path, turn.steps[0].kind) == (str(target), "edit")
    assert "+one" in turn.diff
    assert turn.changed_files == {str(target): 1}
    guests.prompt("write deep/notes.txt: three")
    assert target.read_text() == "three\n"
    guests.runtime.submit_action(FileEditAction(str(target), "undo_edit"), "user").result(60)
    assert target.read_text() == "one\ntwo\n"


@pytest.mark.thorough
def test_a_turn_begins_at_a_checkpoint(guests: Guests) -> None:
    (guests.folder / "a.txt").write_text("before\n")
    turn = guests.prompt("write a.txt: x\nwrite b.txt: y\nrun echo x > made-by-the-shell.txt")
    turns = guests.runtime.executor.turns
    (entry,) = turns.checkpoints.entries()
    assert (entry.id, entry.who, entry.kind) == (turn.checkpoint, "Scripted", "turn")
    guests.call(turns.rewind(entry.id, Scope(), preview=False))
    assert [path.name for path in guests.folder.iterdir()] == ["a.txt"]
    assert (guests.folder / "a.txt").read_text() == "before\n"


@pytest.mark.thorough
def test_a_turn_that_is_undone_leaves_the_agents_memory(guests: Guests) -> None:
    turns = guests.runtime.executor.turns
    guests.prompt("say remember this")
    undone = guests.prompt("write a.txt: x")
    session_id = guests.agents.at_work["scripted"].resumable_id
    guests.call(turns.rewind(undone.checkpoint, Scope(), preview=False))
    text = guests.prompt("hello", context=lambda: "Introduction.").text
    assert guests.agents.at_work["scripted"].resumable_id != session_id
    assert text.startswith("You said: Introduction.\n\nNote from oh_jupyter: the user undid turns")
    assert "User: say remember this\nYou: remember this" in text
    assert "a.txt" not in text
    assert text.endswith("hello")
    assert "prompt 2." in guests.prompt("prompts").text
    # The new conversation is the one to resume.
    assert saved_session(str(guests.folder), "scripted") != session_id
    rewind = next(each for each in turns.checkpoints.entries() if each.kind == "rewind")
    guests.call(turns.rewind(rewind.id, Scope(), preview=False))
    assert recalled(guests, "scripted") == ["say remember this", "write a.txt: x"], (
        "the rewind was undone, and with it what came since"
    )


def recalled(guests: Guests, agent: str) -> list[str]:
    """The prompts that an agent remembers, of which none has an introduction or a note."""
    lines = guests.prompt("recall", agent).text.splitlines()
    return [line.removeprefix("You said before: ").strip() for line in lines if line]


@pytest.fixture
def forking(make_guests: MakeGuests) -> Guests:
    agents = {"forking": command(SCRIPTED, "--forks", "--no-sessions")}
    return make_guests(agents=agents, confirmation="never")


@pytest.mark.thorough
def test_a_rewind_returns_to_the_conversation_before_the_turn(forking: Guests) -> None:
    turns = forking.runtime.executor.turns
    first, second, third = (
        forking.prompt(f"write {name}.txt: x", "forking") for name in ("a", "b", "c")
    )
    assert [turn.cost for turn in (first, second, third)] == [pytest.approx(0.01)] * 3
    forking.call(turns.rewind(second.checkpoint, Scope(), preview=False))
    assert recalled(forking, "forking") == ["write a.txt: x"]
    assert recalled(forking, "forking") == ["write a.txt: x", "recall"]
    rewind = next(each for each in turns.checkpoints.entries() if each.kind == "rewind")
    forking.call(turns.rewind(rewind.id, Scope(), preview=False))
    assert recalled(forking, "forking") == [f"write {name}.txt: x" for name in "abc"]
    forking.call(turns.rewind(third.checkpoint, Scope(), preview=False))
    assert recalled(forking, "forking") == ["write a.txt: x", "write b.txt: x"]
    forking.call(turns.rewind(first.checkpoint, Scope(), preview=False))
    text = forking.prompt("hello", "forking", context=lambda: "Introduction.").text
    assert text == "You said: Introduction.\n\nhello"


@pytest.mark.thorough
def test_an_interrupted_turn_is_forgotten_like_others(forking: Guests) -> None:
    forking.prompt("first", "forking")
    prompting = forking.start("run sleep 1000", "forking")
    wait_for(forking, lambda event: isinstance(event, CmdRunAction))
    prompting.cancel()
    with pytest.raises(CancelledError):
        prompting.result(60)
    interrupted = forking.agents.turns[-1]
    assert recalled(forking, "forking") == ["first", "run sleep 1000"]
    forking.call(
        forking.runtime.executor.turns.rewind(interrupted.checkpoint, Scope(), preview=False)
    )
    assert recalled(forking, "forking") == ["first"]


@pytest.mark.thorough
def test_without_its_fork_a_conversation_starts_with_the_transcript(
    make_guests: MakeGuests,
) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, "cannot-fork")}, confirmation="never")
    guests.prompt("remember this", "broken")
    undone = guests.prompt("forget that", "broken")
    guests.call(guests.runtime.executor.turns.rewind(undone.checkpoint, Scope(), preview=False))
    text = guests.prompt("hello", "broken").text
    assert "User: remember this\nYou: You said: remember this" in text
    assert "forget" not in text


@pytest.mark.thorough
def test_a_resumed_conversation_returns_to_where_it_was_resumed(make_guests: MakeGuests) -> None:
    settings: dict[str, Any] = {
        "agents": {"forking": command(SCRIPTED, "--forks")},
        "confirmation": "never",
    }
    first = make_guests(**settings)
    first.prompt("long ago", "forking")
    later = make_guests(**settings)
    undone = later.prompt("write a.txt: x", "forking", resume=True)
    later.call(later.runtime.executor.turns.rewind(undone.checkpoint, Scope(), preview=False))
    assert recalled(later, "forking") == []


@pytest.mark.thorough
def test_without_turns_before_it_a_conversation_starts_empty(guests: Guests) -> None:
    undone = guests.prompt("write a.txt: x")
    guests.call(guests.runtime.executor.turns.rewind(undone.checkpoint, Scope(), preview=False))
    assert guests.prompt("hello").text == "You said: hello"
    assert "prompt 2." in guests.prompt("prompts").text


@pytest.mark.thorough
def test_an_agent_with_one_session_is_notified_of_undone_and_restored_turns(
    make_guests: MakeGuests,
) -> None:
    guests = make_guests(
        agents={"scripted": command(SCRIPTED, "--no-sessions")}, confirmation="never"
    )
    turns = guests.runtime.executor.turns
    shown: list[tuple[str, bool]] = []
    guests.agents._on_turn = lambda turn: shown.append((turn.prompt, turn.undone))
    first = guests.prompt("write a.txt: x")
    assert "Note from" not in guests.prompt("anything").text
    guests.call(turns.rewind(first.checkpoint, Scope(), preview=False))
    wait_until(lambda: shown[-2:] == [("write a.txt: x", True), ("anything", True)])
    text = guests.prompt("hello").text
    assert f"undid your turn 'write a.txt: x' ({guests.folder / 'a.txt'})" in text
    assert "undid your turn 'anything'" in text
    assert text.endswith("hello")
    assert "Note from" not in guests.prompt("once only").text
    rewind = next(each for each in turns.checkpoints.entries() if each.kind == "rewind")
    guests.call(turns.rewind(rewind.id, Scope(), preview=False))
    assert "restored your turn 'write a.txt: x'" in guests.prompt("again").text
    assert not first.undone


def test_a_turn_names_the_files_that_run(guests: Guests) -> None:
    project = guests.folder / "pyproject.toml"
    project.write_text("[project]\nname = 'a'\n")
    turn = guests.prompt(
        "write conftest.py: x = 1\nrun echo all: > Makefile; echo x > notes.txt; "
        "echo \"version = '1'\" >> pyproject.toml"
    )
    acts = {"conftest.py": "you run pytest", "Makefile": "you run make"}
    assert turn.runs_when == {str(guests.folder / name): act for name, act in acts.items()}
    assert str(project) in turn.changed_by_commands
    bundle = turn_bundle(turn)
    for kind in ("text/plain", "text/markdown"):
        assert "Makefile · runs when you run make" in bundle[kind]
    assert turn_reply(turn).runs_when == turn.runs_when


@pytest.mark.thorough
def test_changes_of_a_command_are_in_the_turns_diff(guests: Guests) -> None:
    (guests.folder / "kept.txt").write_text("kept\n")
    (guests.folder / "old.txt").write_text("old\n")
    turn = guests.prompt(
        "write a.txt: x\nrun echo new > old.txt; printf '\\0' > data.bin; touch kept.txt"
    )
    assert list(turn.changed_files) == [str(guests.folder / "a.txt")]
    changed = [str(guests.folder / name) for name in ("data.bin", "old.txt")]
    assert turn.changed_by_commands == changed
    assert "+x" in turn.diff
    assert "-old\n+new" in turn.diff
    assert f"created {changed[0]}: binary" in turn.diff
    assert "3 files changed" in repr(turn)
    assert guests.prompt("say nothing").diff == ""


@pytest.mark.thorough
@pytest.mark.parametrize("path", ["/etc/passwd", "../elsewhere.txt", "link/x.txt"])
def test_a_path_outside_of_the_workspace_is_refused(guests: Guests, path: str) -> None:
    (guests.folder / "link").symlink_to("/tmp")
    turn = guests.prompt(f"read {path}\nwrite {path}: x\nsay continuing")
    assert turn.text.count("is outside of the workspace") == 2
    assert "continuing" in turn.text
    assert "FileReadAction" not in kinds(guests)


@pytest.mark.thorough
def test_a_command_runs_and_is_in_the_log(guests: Guests) -> None:
    turn = guests.prompt("run echo out; echo err >&2; exit 3")
    assert (turn.steps[0].output, turn.steps[0].status) == ("out\nerr\n", "failed")
    wait_until(lambda: len(guests.log()) > 2)
    action, observation = guests.log()[1:3]
    assert isinstance(action, CmdRunAction)
    assert isinstance(observation, CmdOutputObservation)
    assert (observation.content, observation.exit_code) == ("out\nerr\n", 3)


@pytest.mark.thorough
def test_a_command_does_not_get_the_operators_secrets(guests: Guests, monkeypatch) -> None:
    monkeypatch.setenv("OH_JUPYTER_KERNEL_TOKEN", "very-secret")
    monkeypatch.setenv("MODEL_KEY", "the agent's own affair")
    turn = guests.prompt("run env", new=True)
    assert "very-secret" not in turn.steps[0].output
    assert "MODEL_KEY=the agent's own affair" in turn.steps[0].output


@pytest.mark.thorough
@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap")
def test_a_command_of_a_guest_runs_in_its_box(make_guests: MakeGuests, monkeypatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "the agent's own affair")
    guests = make_guests(sandbox="required")
    turn = guests.prompt("run touch /etc/x; env; echo x >/tmp/x")
    assert "Read-only file system" in turn.steps[0].output
    assert "MODEL_KEY" not in turn.steps[0].output
    # The agent has its output as soon as the command has ended, before that is in the log.
    wait_until(lambda: len(guests.log()) > 2)
    assert guests.log()[2].handling == {"sandboxed": True}
    assert guests.prompt("run cat /tmp/x").steps[-1].output == "x\n"
    limited = "until [ $(ulimit -u) = 4096 ]; do :; done; ulimit -u"  # set from outside
    assert guests.prompt(f"run {limited}").steps[-1].output == "4096\n"


@pytest.mark.thorough
@pytest.mark.skipif(find_engine().program is None, reason="needs bubblewrap")
def test_a_permission_is_asked_although_a_box_exists(make_guests: MakeGuests) -> None:
    """The agent may run the command with a tool of its own, outside of the box."""
    guests = make_guests(sandbox="auto", confirmation="risky", confirmation_timeout=0.2)
    turn = guests.prompt("ask run sudo true")
    assert "The answer was once." not in turn.text


# Permission: one policy, one question for one act.


@pytest.mark.thorough
def test_a_policy_without_questions(guests: Guests) -> None:
    turn = guests.prompt("ask run echo yes\nask write a.txt: b")
    assert turn.text.count("The answer was once.") == 2
    assert (turn.steps[0].output, (guests.folder / "a.txt").read_text()) == ("yes\n", "b\n")


@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["risky", "always"])
def test_a_permission_is_one_question_and_its_approval_applies(
    make_guests: MakeGuests, policy: str
) -> None:
    guests = make_guests(confirmation=policy)
    confirmations = guests.runtime.executor.confirmations
    future = guests.start("ask run echo yes\nask write a.txt: b")
    for kind in (CmdRunAction, FileEditAction):
        event = wait_for(guests, lambda event, kind=kind: isinstance(event, kind))
        guests.call(resolve(confirmations, event.id, True))
    turn = future.result(60)
    assert turn.steps[0].output == "yes\n"
    assert (guests.folder / "a.txt").read_text() == "b\n"
    assert not confirmations.waiting


async def resolve(confirmations: Any, id: int, approved: bool) -> None:
    await confirmations.resolve(id, Decision(approved))


@pytest.mark.thorough
def test_a_rejected_command_does_not_run(make_guests: MakeGuests) -> None:
    guests = make_guests(confirmation="risky")
    future = guests.start("ask run touch done.txt\nsay continuing")
    event = wait_for(guests, lambda event: isinstance(event, CmdRunAction))
    guests.call(resolve(guests.runtime.executor.confirmations, event.id, False))
    turn = future.result(60)
    assert turn.text.startswith("The answer was no.")
    assert "continuing" in turn.text
    assert not (guests.folder / "done.txt").exists()
    assert any(isinstance(event, UserRejectObservation) for event in guests.log())
    with pytest.raises(ConfirmationError):
        guests.call(resolve(guests.runtime.executor.confirmations, event.id, True))


@pytest.mark.thorough
def test_an_agent_that_does_not_ask_is_asked_about_all_the_same(make_guests: MakeGuests) -> None:
    guests = make_guests(confirmation="always")
    future = guests.start("write a.txt: b\nrun echo x")
    for approved, kind in ((False, FileEditAction), (False, CmdRunAction)):
        event = wait_for(guests, lambda event, kind=kind: isinstance(event, kind))
        guests.call(resolve(guests.runtime.executor.confirmations, event.id, approved))
    turn = future.result(60)
    assert turn.text.count("Action has been rejected by the user!") == 2
    assert not (guests.folder / "a.txt").exists()


def test_an_approval_is_for_the_displayed_command(make_guests: MakeGuests) -> None:
    guests = make_guests(confirmation="always")
    future = guests.start("ask write a.txt: b\nwrite other.txt: c")
    for approved in (True, False):
        event = wait_for(
            guests, lambda event: event.id in guests.runtime.executor.confirmations.waiting
        )
        guests.call(resolve(guests.runtime.executor.confirmations, event.id, approved))
    future.result(60)
    assert (guests.folder / "a.txt").exists()
    assert not (guests.folder / "other.txt").exists()


# Interrupt.


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that obeys is not ended because a busy machine lets it obey late."""
    monkeypatch.setattr("oh_jupyter.agents.session.CANCEL_TIMEOUT_SECONDS", 60)


@pytest.mark.usefixtures("unhurried")
def test_an_interrupt_ends_the_turn_and_the_conversation_continues(guests: Guests) -> None:
    future = guests.start("run sleep 1000; echo never\nsay never")
    wait_for(guests, lambda event: isinstance(event, CmdRunAction))
    future.cancel()
    with pytest.raises(CancelledError):
        future.result(60)
    assert "prompt 2." in guests.prompt("prompts").text
    observation = wait_for(guests, lambda event: event.cause is not None)
    assert "cancelled" in observation.content
    agent = psutil.Process(guests.agents.at_work["scripted"].pid)
    assert agent.is_running()
    wait_until(
        lambda: not descendants(lambda child: child.name() == "sleep"),
        what="the end of the command",
    )


@pytest.mark.thorough
@pytest.mark.usefixtures("unhurried")
def test_an_interrupt_while_a_person_is_asked_withdraws_the_question(
    make_guests: MakeGuests,
) -> None:
    guests = make_guests(confirmation="always")
    future = guests.start("ask run echo x")
    wait_for(guests, lambda event: isinstance(event, CmdRunAction))
    future.cancel()
    assert "prompt 2." in guests.prompt("prompts").text
    assert not guests.runtime.executor.confirmations.waiting


@pytest.mark.thorough
def test_an_agent_that_does_not_obey_is_ended_with_all_of_its_processes(
    make_guests: MakeGuests, tmp_path
) -> None:
    pid_file = tmp_path / "pid"
    guests = make_guests(agents={"broken": command(BROKEN, "hangs", str(pid_file))})
    working = threading.Event()
    future = guests.start("x", "broken", on_change=lambda turn: working.set())
    assert working.wait(60)
    agent = psutil.Process(guests.agents.at_work["broken"].pid)
    below = psutil.Process(int(pid_file.read_text()))
    future.cancel()
    assert not psutil.wait_procs([agent, below], timeout=60)[1]
    assert guests.agents.at_work == {}
    assert guests.prompt("say the runtime works").text == "the runtime works "


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (
            "retries",
            "broken: Reconnecting... 1/5 (status 429). Its model's provider rejects further",
        ),
        ("is-silent", "broken has been silent for"),
    ],
)
def test_a_delay_of_an_agent_is_shown_and_stays_after_an_interrupt(
    make_guests: MakeGuests, monkeypatch: pytest.MonkeyPatch, how: str, expected: str
) -> None:
    monkeypatch.setattr("oh_jupyter.agents.session.SILENCE_SECONDS", 0.2)
    monkeypatch.setattr("oh_jupyter.agents.session.CANCEL_TIMEOUT_SECONDS", 0.1)
    guests = make_guests(agents={"broken": command(BROKEN, how)})
    shown = threading.Event()
    turns: list[Any] = []

    def look(turn: Any) -> None:
        if turn.status.startswith(expected):
            turns.append(turn)
            shown.set()

    future = guests.start("x", "broken", on_change=look)
    assert shown.wait(60)
    future.cancel()
    with pytest.raises(CancelledError):
        future.result(60)
    assert turns[0].status.startswith(expected)


def test_an_agents_error_is_reported_with_a_remedy(make_guests: MakeGuests) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, "fails")})
    with pytest.raises(AgentError) as caught:
        guests.prompt("x", "broken")
    assert str(caught.value) == (
        "broken: Internal error: unexpected status 401 Unauthorized: no such key. Its key or login "
        "is missing or was refused: log in with the agent's own program, or set its key in the "
        "environment of the Jupyter server."
    )


def test_a_question_does_not_overwrite_the_call_that_it_is_about(guests: Guests) -> None:
    client = AcpClient(guests.runtime.executor, {}, "scripted-0a1b2c3d")
    turn = AgentTurn("codex", "x")
    client.begin(turn, lambda turn: None)
    options = [PermissionOption(kind="allow_once", name="Yes", option_id="yes")]
    started = ToolCallStart(
        session_update="tool_call",
        tool_call_id="1",
        title="Run print(1)",
        kind="execute",
        raw_input={"command": "print(1)"},
    )
    guests.call(client.session_update("s", started))
    for id, arguments in (("1", {"call": "77"}), ("2", {"command": ["ls", "-l"]})):
        asked = ToolCallUpdate(
            tool_call_id=id, title="Approve MCP tool call" if id == "1" else None,
            raw_input=arguments,
        )  # fmt: skip
        answer = guests.call(client.request_permission("s", asked, options))
        assert answer.outcome.outcome == "selected"
    assert [(step.title, step.arguments) for step in turn.steps] == [
        ("Run print(1)", {"command": "print(1)"}),
        ("a tool: ls -l", {"command": ["ls", "-l"]}),
    ]


def test_an_agent_that_is_not_installed_is_not_fetched(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npx = tmp_path / "npx"
    npx.write_text("#!/bin/sh\n")
    npx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AgentNotFoundError, match="npm install -g @google/gemini-cli"):
        find_agent("gemini", known_agents()).arguments()


@pytest.mark.thorough
def test_a_second_prompt_meanwhile_is_refused(guests: Guests) -> None:
    future = guests.start("run sleep 1000")
    wait_for(guests, lambda event: isinstance(event, CmdRunAction))
    with pytest.raises(AgentError, match="busy with another prompt"):
        guests.prompt("say hello")
    with pytest.raises(AgentError, match="busy with another prompt"):
        guests.prompt("say hello", new=True)
    future.cancel()


@pytest.mark.thorough
def test_stopping_and_closing_leave_nothing(make_guests: MakeGuests) -> None:
    guests = make_guests()
    guests.prompt("say hello")
    agent = psutil.Process(guests.agents.at_work["scripted"].pid)
    assert guests.call(guests.agents.stop("scripted")) == ["scripted"]
    assert not psutil.wait_procs([agent], timeout=60)[1]
    guests.prompt("say hello")
    agent = psutil.Process(guests.agents.at_work["scripted"].pid)
    guests.runtime.close()
    assert not psutil.wait_procs([agent], timeout=60)[1]


# Agents that do not behave.


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("dies-at-once", "broken has ended: exit status 7. Its last output: no such model"),
        ("dies", "broken has ended: exit status 3. Its last output: out of memory"),
        ("nonsense", "violates the Agent Client Protocol: protocolVersion"),
        ("refuses", "broken: Authentication required"),
        ("garbage", "it sent a message of more than 32 MiB"),
        ("chats", "it wrote more than 1000 lines that are not messages"),
    ],
)
def test_an_agents_fault_is_one_clear_error(
    make_guests: MakeGuests, how: str, message: str, capfd
) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, how)})
    with pytest.raises(AgentError) as error:
        guests.prompt("x", "broken")
    assert message in str(error.value)
    assert guests.prompt("say the runtime works").text == "the runtime works "
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("how", "version"),
    [("answers-version-2", "version 2"), ("rejects-version-1", "another version")],
)
def test_an_agent_without_our_version_of_the_protocol(
    make_guests: MakeGuests, how: str, version: str, capfd
) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, how)})
    with pytest.raises(AgentError) as error:
        guests.prompt("x", "broken")
    assert str(error.value) == (
        f"broken speaks {version} of the Agent Client Protocol, and oh_jupyter only version 1: "
        "install a release of broken that speaks version 1"
    )
    assert "Traceback" not in capfd.readouterr().err


def test_an_agent_that_does_not_start_times_out(make_guests: MakeGuests) -> None:
    guests = make_guests(
        agents={"broken": command(BROKEN, "hangs-at-once")}, agent_start_timeout=1.0
    )
    with pytest.raises(AgentError, match="did not start a session within 1 s"):
        guests.prompt("x", "broken")


@pytest.mark.thorough
def test_a_flood_is_bounded_and_leaves_the_runtime_to_others(make_guests: MakeGuests) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, "floods")})
    flooding = threading.Event()
    future = guests.start("x", "broken", on_change=lambda turn: flooding.set())
    assert flooding.wait(60)
    written = guests.runtime.submit_action(FileWriteAction("a.txt", "x"), "user").result(60)
    assert written.path.endswith("a.txt")
    turn = future.result(120)
    assert (len(turn.text), turn.truncated) == (200_000, True)


def test_invalid_messages_are_skipped(make_guests: MakeGuests, capfd) -> None:
    guests = make_guests(agents={"broken": command(BROKEN, "confuses")})
    assert guests.prompt("x", "broken").text == "still here"
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.thorough
def test_a_dead_agent_is_replaced_and_reported(guests: Guests) -> None:
    guests.prompt("say hello")
    session = guests.agents.at_work["scripted"]
    psutil.Process(session.pid).kill()
    assert "exit status -9" in guests.call(session.wait_ended())
    turn = guests.prompt("prompts")
    assert "prompt 1." in turn.text
    assert "A new conversation was started" in turn.notices[0]


# Which agents there are.


def test_an_unknown_agent(guests: Guests) -> None:
    with pytest.raises(
        AgentNotFoundError, match=r"no agent 'clod'\. Agents: claude, codex, gemini"
    ):
        guests.prompt("x", "clod")


def test_an_agent_that_is_not_installed(guests: Guests, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, how in (
        ("claude", "npm install -g @agentclientprotocol/claude-agent-acp"),
        ("goose", "Install it: "),
    ):
        with pytest.raises(AgentNotFoundError) as error:
            guests.prompt("x", name)
        assert how in str(error.value)


def test_codex_waits_for_a_person() -> None:
    configure = find_agent("codex", known_agents()).configure_tools
    assert configure is not None
    arguments = configure(("python", "-S", 'a "b"'))
    options = tomllib.loads("\n".join(arguments[1::2]))["mcp_servers"]["oh"]
    assert set(arguments[::2]) == {"-c"}
    assert (options["command"], options["args"]) == ("python", ["-S", 'a "b"'])
    assert options["tool_timeout_sec"] >= 3600


def test_a_missing_library_is_reported_with_install_instructions(
    guests: Guests, monkeypatch
) -> None:
    for name in ("acp", "oh_jupyter.agents.session"):
        monkeypatch.delitem(__import__("sys").modules, name, raising=False)
    monkeypatch.setitem(__import__("sys").modules, "acp", None)
    with pytest.raises(AgentError, match=r'pip install "oh_jupyter\[agents\]"'):
        guests.prompt("x")


@pytest.mark.parametrize("line", ["", "'open"])
def test_a_command_line_that_cannot_be_used(make_guests: MakeGuests, line: str) -> None:
    with pytest.raises(AgentError, match="command line of the agent 'mine' cannot be used"):
        make_guests(agents={"mine": line}).prompt("x", "mine")


def test_no_questions(guests: Guests) -> None:
    with pytest.raises(AgentError, match="Say which agent"):
        guests.prompt("x", None)
    with pytest.raises(AgentError, match="Write a prompt: %oh_agent scripted"):
        guests.prompt("  ", "scripted")


# A conversation that outlives its kernel.


@pytest.mark.thorough
def test_a_conversation_is_resumed_by_a_later_runtime(tmp_path, make_guests: MakeGuests) -> None:
    with pytest.raises(AgentError, match="no earlier conversation"):
        make_guests().prompt("x", resume=True)
    first = make_guests()
    first.prompt("say hello")
    session_id = saved_session(str(first.folder), "scripted")
    later = make_guests()
    turn = later.prompt("prompts", resume=True, context=lambda: "never told")
    assert later.agents.at_work["scripted"].resumable_id == session_id
    assert "prompt 1." in turn.text
    assert "told again" not in turn.text


def test_an_agent_that_the_administrator_does_not_allow(make_guests: MakeGuests) -> None:
    guests = make_guests(policy={"agents": "claude"})
    with pytest.raises(PolicyError, match="does not allow scripted"):
        guests.prompt("say hello")
