"""Skills by name as Actions, in a real runtime."""

from __future__ import annotations

import json

import pytest

from oh_jupyter import skills
from oh_jupyter.events import ErrorObservation, MCPAction, MCPObservation
from oh_jupyter.events.wire import action_from_wire, to_wire
from oh_jupyter.runtime.tools import Tool

pytestmark = pytest.mark.usefixtures("forget_registered_skills")


def call(runtime, name, timeout=None, **arguments):
    action = MCPAction(name, arguments)
    action.timeout = timeout
    return runtime.submit_action(action).result(60)


def test_a_skill_prints_into_its_observation(runtime, tmp_path, capsys):
    path = tmp_path / "poem.txt"
    path.write_text("roses\nviolets\n")
    observation = call(runtime, "open_file", path=str(path), line_number=2)
    assert isinstance(observation, MCPObservation)
    assert (observation.name, observation.arguments["line_number"]) == ("open_file", 2)
    result = json.loads(observation.content)
    assert result["isError"] is False
    assert result["content"][0]["text"] == (
        f"[File: {path} (2 lines total)]\n(this is the beginning of the file)\n1|roses\n"
        "2|violets\n(this is the end of the file)"
    )
    # The window stays open from call to call.
    result = json.loads(call(runtime, "search_file", search_term="violet").content)
    assert "Line 2: violets" in result["content"][0]["text"]
    assert capsys.readouterr().out == ""


def test_the_wire_form(runtime, tmp_path):
    action = action_from_wire(
        {
            "action": "call_tool_mcp",
            "args": {
                "name": "find_file",
                "arguments": {"file_name": "zz", "dir_path": "/proc/1/x"},
            },
        }
    )
    wire = to_wire(runtime.submit_action(action).result(60))
    assert wire["observation"] == "mcp"
    assert wire["extras"]["name"] == "find_file"
    assert "Directory /proc/1/x not found" in json.loads(wire["content"])["content"][0]["text"]


def test_wrong_arguments_and_failures_are_error_results(runtime):
    result = json.loads(call(runtime, "goto_line", line=3).content)
    assert result["isError"] is True
    assert "goto_line(line_number: int)" in result["content"][0]["text"]
    wrong = {"start_entities": ["/"], "direction": "sideways"}
    result = json.loads(call(runtime, "explore_tree_structure", **wrong).content)
    assert result["isError"] is True
    assert "SkillError: Invalid value for `direction`" in result["content"][0]["text"]
    result = json.loads(call(runtime, "parse_pdf", file_path="/no/such.pdf").content)
    assert "Error reading PDF file: [Errno 2]" in result["content"][0]["text"]


def test_an_unknown_tool_is_an_error_that_names_the_closest(runtime):
    observation = call(runtime, "open_fil")
    assert isinstance(observation, ErrorObservation)
    assert observation.content == (
        "There is no tool 'open_fil'. The closest are: open_file, find_file, search_file."
    )
    assert "Tools: open_file, goto_line" in call(runtime, "qqq").content


def test_skills_that_are_added_are_tools_at_once(runtime):
    def shout(text: str, times: int = 1) -> str:
        """Say it loudly.

        Args:
            text: What to say.
        """
        return text.upper() * times

    skills.register(shout)
    tool = runtime.executor.tools.tools()["shout"]
    assert tool.description == "Say it loudly."
    assert tool.input_schema["properties"]["text"] == {
        "type": "string",
        "description": "What to say.",
    }
    result = json.loads(call(runtime, "shout", text="oh", times=2).content)
    assert result["content"][0]["text"] == "OHOH"
    skills.remove("shout")
    assert isinstance(call(runtime, "shout", text="oh"), ErrorObservation)


def test_a_skill_that_takes_too_long_does_not_keep_the_agent_waiting(runtime):
    import threading

    release = threading.Event()

    def slow() -> None:
        """Wait."""
        release.wait(30)

    skills.register(slow)
    result = json.loads(call(runtime, "slow", timeout=0.2).content)
    release.set()
    assert result == {
        "isError": True,
        "error": "The tool 'slow' did not answer within 0.2 seconds.",
        "content": [],
    }


def test_other_sources_of_tools(runtime):
    async def answer(arguments):
        return {"content": [], "isError": False, "structuredContent": arguments}

    runtime.executor.tools.add("more", lambda: [Tool("echo", "", {}, answer)])
    result = json.loads(call(runtime, "echo", a=1).content)
    assert result["structuredContent"] == {"a": 1}
    runtime.executor.tools.remove("more")
    assert isinstance(call(runtime, "echo"), ErrorObservation)
