"""The wire form of events, both ways, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest

from oh_jupyter.errors import UnknownTypeError, WireError
from oh_jupyter.events import (
    ACTIONS,
    OBSERVATIONS,
    ActionConfirmationStatus,
    ActionSecurityRisk,
    Actor,
    CmdOutputMetadata,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileEditAction,
    FileReadAction,
    MessageAction,
)
from oh_jupyter.events.wire import (
    action_from_wire,
    from_wire,
    observation_from_wire,
    to_wire,
)

REQUIRED = {
    "run": {"command": "ls"},
    "run_ipython": {"code": "1 + 1"},
    "read": {"path": "a.txt"},
    "write": {"path": "a.txt", "content": "x"},
    "edit": {"path": "/a.txt"},
    "browse": {"url": "http://localhost/"},
    "browse_interactive": {"browser_actions": "noop()"},
    "call_tool_mcp": {"name": "fetch"},
    "think": {"thought": "hm"},
    "finish": {},
    "message": {"content": "hello"},
    "null": {},
    "system": {"content": "You are an agent."},
    "reject": {},
    "delegate": {"agent": "BrowsingAgent", "inputs": {"task": "look"}},
    "recall": {"recall_type": "knowledge"},
    "change_agent_state": {"agent_state": "paused"},
    "condensation": {"forgotten_event_ids": [1, 2]},
    "condensation_request": {},
    "task_tracking": {"command": "plan", "task_list": [{"title": "one"}]},
    "loop_recovery": {},
}

ARGS = {
    "run": "command is_input thought blocking is_static cwd hidden confirmation_state "
    "security_risk",
    "run_ipython": "code thought include_extra confirmation_state security_risk kernel_init_code",
    "read": "path start end thought security_risk impl_source view_range",
    "write": "path content start end thought security_risk",
    "edit": "path command file_text old_str new_str insert_line content start end thought "
    "security_risk impl_source",
    "browse": "url thought security_risk return_axtree",
    "browse_interactive": "browser_actions thought browsergym_send_msg_to_user security_risk "
    "return_axtree",
    "call_tool_mcp": "name arguments thought security_risk",
    "think": "thought",
    "finish": "final_thought outputs thought",
    "message": "content file_urls image_urls wait_for_response security_risk",
    "null": "",
    "system": "content tools openhands_version agent_class",
    "reject": "outputs thought",
    "delegate": "agent inputs thought",
    "recall": "recall_type query thought",
    "change_agent_state": "agent_state thought",
    "condensation": "forgotten_event_ids forgotten_events_start_id forgotten_events_end_id "
    "summary summary_offset",
    "condensation_request": "",
    "task_tracking": "command task_list thought",
    "loop_recovery": "option",
}

EXTRAS = {
    "run": "command metadata hidden",
    "run_ipython": "code image_urls",
    "read": "path impl_source",
    "write": "path",
    "edit": "path prev_exist old_content new_content impl_source diff _diff_cache",
    "browse": "url trigger_by_action screenshot screenshot_path set_of_marks error "
    "goal_image_urls open_pages_urls active_page_index dom_object axtree_object "
    "extra_element_properties last_browser_action last_browser_action_error "
    "focused_element_bid filter_visible_only",
    "download": "file_path",
    "error": "error_id",
    "mcp": "name arguments",
    "null": "",
    "think": "",
    "user_rejected": "",
    "delegate": "outputs",
    "success": "",
    "agent_state_changed": "agent_state reason",
    "condense": "",
    "recall": "recall_type repo_name repo_directory repo_branch repo_instructions runtime_hosts "
    "additional_agent_instructions date custom_secrets_descriptions conversation_instructions "
    "working_dir microagent_knowledge",
    "task_tracking": "command task_list",
    "loop_detection": "",
}


@pytest.mark.parametrize("kind", sorted(ACTIONS))
def test_every_action_survives_the_wire(kind: str) -> None:
    action = action_from_wire({"action": kind, "args": REQUIRED[kind], "timeout": 3})
    wire = json.loads(json.dumps(to_wire(action)))
    assert wire["action"] == kind
    assert wire["timeout"] == 3
    assert action_from_wire(wire) == action


@pytest.mark.parametrize("kind", sorted(ARGS))
def test_actions_have_the_arguments_of_the_protocol(kind: str) -> None:
    action = action_from_wire({"action": kind, "args": REQUIRED[kind]})
    assert set(to_wire(action)["args"]) == set(ARGS[kind].split())


OURS = {
    "dry_run": True,
    "enable_linting": True,
    "replace_all": True,
    "cell": "a1",
    "edit_mode": "insert",
    "cell_type": "code",
    "to": 3,
    "within": "/w",
}


def test_fields_unknown_to_openhands_are_outside_args() -> None:
    own = [f.name for f in dataclasses.fields(FileEditAction) if "extension" in f.metadata]
    assert own == ["actor", *OURS]
    action = FileEditAction("/f", **OURS)
    wire = json.loads(json.dumps(to_wire(action)))
    # OpenHands passes every key of args on to a constructor, and looks at no key that it lacks.
    assert set(wire["args"]) == set(ARGS["edit"].split())
    assert wire["oh_jupyter"] == OURS
    assert action_from_wire(wire) == action
    in_args = {"action": "edit", "args": {**wire["args"], **OURS}}
    assert action_from_wire(in_args) == action
    assert "oh_jupyter" not in to_wire(FileEditAction("/f"))
    action.actor = Actor(user="ada", persona="claude")
    wire = to_wire(action)
    assert wire["oh_jupyter"] == {"actor": {"user": "ada", "persona": "claude"}, **OURS}
    assert action_from_wire(wire).actor == action.actor


@pytest.mark.parametrize(
    ("action", "extension", "field"),
    [
        ("edit", [], "oh_jupyter"),
        ("edit", {"dryrun": True}, "oh_jupyter.dryrun"),
        ("edit", {"command": "create"}, "oh_jupyter.command"),
        ("edit", {"dry_run": 1}, "args.dry_run"),
        ("read", {"dry_run": True}, "oh_jupyter.dry_run"),
    ],
)
def test_unknown_extension_fields_are_refused(action, extension, field) -> None:
    with pytest.raises(WireError) as refused:
        action_from_wire({"action": action, "args": {"path": "/f"}, "oh_jupyter": extension})
    assert refused.value.field == field


@pytest.mark.parametrize("kind", sorted(OBSERVATIONS))
def test_every_observation_survives_the_wire(kind: str) -> None:
    observation = OBSERVATIONS[kind]("text")
    wire = json.loads(json.dumps(to_wire(observation)))
    assert wire["observation"] == kind
    assert wire["content"] == "text"
    assert observation_from_wire(wire) == observation


@pytest.mark.parametrize("kind", sorted(EXTRAS))
def test_observations_have_the_extras_of_the_protocol_and_no_other(kind: str) -> None:
    assert set(to_wire(OBSERVATIONS[kind]("x"))["extras"]) == set(EXTRAS[kind].split())


def test_only_commands_and_cells_have_a_success_field() -> None:
    kinds = {kind for kind, cls in OBSERVATIONS.items() if "success" in to_wire(cls("x"))}
    assert kinds == {"run", "run_ipython"}
    done = CmdOutputObservation("", command="true", metadata=CmdOutputMetadata(exit_code=0))
    assert to_wire(done)["success"] is True
    assert to_wire(done)["message"] == "Command `true` executed with exit code 0."


def test_the_place_in_the_log_is_at_the_top_level() -> None:
    observation = ErrorObservation("no")
    observation.id, observation.cause, observation.source = 4, 3, "agent"
    observation.timestamp = "2026-01-01T00:00:00"
    wire = to_wire(observation)
    again = from_wire(wire)
    assert (again.id, again.cause, again.source) == (4, 3, "agent")
    assert again.timestamp == "2026-01-01T00:00:00"


@pytest.mark.parametrize(
    ("data", "error", "field"),
    [
        ([], WireError, "action"),
        ({"args": {}}, WireError, "action"),
        ({"action": "fly"}, UnknownTypeError, "action"),
        ({"observation": "run", "content": ""}, UnknownTypeError, "action"),
        ({"action": "run", "args": []}, WireError, "args"),
        ({"action": "run", "args": {}}, WireError, "args.command"),
        ({"action": "run", "args": {"command": 5}}, WireError, "args.command"),
        ({"action": "run", "args": {"command": "ls", "is_input": 1}}, WireError, "args.is_input"),
        ({"action": "run", "args": {"command": "ls", "shell": "zsh"}}, WireError, "args.shell"),
        ({"action": "run", "args": {"command": "ls"}, "timeout": "5"}, WireError, "timeout"),
        ({"action": "run", "args": {"command": "ls"}, "timeout": -1}, WireError, "timeout"),
        ({"action": "read", "args": {"path": "a", "start": True}}, WireError, "args.start"),
        (
            {"action": "read", "args": {"path": "a", "view_range": ["1"]}},
            WireError,
            "args.view_range",
        ),
        (
            {"action": "read", "args": {"path": "a", "impl_source": "x"}},
            WireError,
            "args.impl_source",
        ),
        (
            {"action": "run", "args": {"command": "ls", "confirmation_state": "maybe"}},
            WireError,
            "args.confirmation_state",
        ),
    ],
)
def test_malformed_actions_are_refused_with_the_name_of_the_field(data, error, field) -> None:
    with pytest.raises(error) as refused:
        action_from_wire(data)
    assert refused.value.field == field
    assert field.rpartition(".")[2] in str(refused.value)


def test_an_unusable_security_risk_is_dropped() -> None:
    for risk, read in ((2, ActionSecurityRisk.HIGH), ("x", ActionSecurityRisk.UNKNOWN)):
        action = action_from_wire(
            {"action": "run", "args": {"command": "ls", "security_risk": risk}}
        )
        assert isinstance(action, CmdRunAction)
        assert action.security_risk is read


def test_old_names_are_read() -> None:
    old = {"command": "ls", "is_confirmed": "rejected", "keep_prompt": True, "timestamp": "x"}
    action = action_from_wire({"action": "run", "args": old})
    assert isinstance(action, CmdRunAction)
    assert action.confirmation_state is ActionConfirmationStatus.REJECTED
    message = action_from_wire(
        {"action": "message", "args": {"content": "a", "images_urls": ["b"]}}
    )
    assert isinstance(message, MessageAction)
    assert message.image_urls == ["b"]
    code = "print(file_editor(**{'command': 'create', 'path': '/x', 'file_text': 'a'}))"
    edit = action_from_wire(
        {"action": "edit", "args": {"path": "/x", "translated_ipython_code": code}}
    )
    assert isinstance(edit, FileEditAction)
    assert (edit.command, edit.file_text) == ("create", "a")


def test_the_extras_of_a_command_are_read_leniently() -> None:
    extras = {"command": "ls", "exit_code": 3, "command_id": 9, "from_the_future": 1}
    observation = observation_from_wire({"observation": "run", "content": "", "extras": extras})
    assert isinstance(observation, CmdOutputObservation)
    assert (observation.exit_code, observation.metadata.pid) == (3, 9)
    with pytest.raises(WireError):
        observation_from_wire({"observation": "read", "content": "", "extras": {"future": 1}})


def test_a_hard_timeout_turns_blocking_on_by_default() -> None:
    action = CmdRunAction("sleep 1")
    action.set_hard_timeout(5)
    assert (action.timeout, action.blocking) == (5, True)
    action.set_hard_timeout(6, blocking=False)
    assert (action.timeout, action.blocking) == (6, False)


def test_events_are_equal_and_shown_as_dataclasses_are() -> None:
    one, other = CmdRunAction("ls", timeout=3), CmdRunAction("ls")
    one.id = 7  # the log around an event is neither shown nor compared
    assert one == other
    assert one != CmdRunAction("pwd")
    assert one != FileReadAction("ls")
    assert repr(FileReadAction("a")).startswith("FileReadAction(path='a', start=0, end=-1, ")
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
