"""``%oh_skills`` and the skills in agents' cells, in a real kernel."""

from __future__ import annotations

import json

import pytest


def tool(kernel, name: str, **arguments) -> dict:
    observation = kernel.act("call_tool_mcp", name=name, arguments=arguments)
    assert observation["observation"] == "mcp", observation
    return json.loads(observation["content"])


def test_listing_and_explaining(kernel) -> None:
    listed = kernel.execute("%oh_skills")
    assert "search_dir" in listed
    assert "search_code_snippets" in listed
    explained = kernel.execute("%oh_skills search_dir")
    assert explained.startswith("search_dir(search_term: str, dir_path: str = './') -> None\n\n")
    assert "search_term: The text." in explained
    schema = json.loads(kernel.execute("%oh_skills schema search_dir"))
    assert schema["required"] == ["search_term"]
    assert kernel.execute("%oh_skills docs").startswith("open_file(path: str")


def test_who_lists_the_persons_names(fresh_kernel) -> None:
    fresh_kernel.execute("find_file = 'the own one'")
    assert fresh_kernel.act("run_ipython", code="search_dir")["content"].startswith("<function")
    assert fresh_kernel.execute("%who").split() == ["find_file"]
    fresh_kernel.execute("search_dir = 1")
    assert fresh_kernel.execute("%who").split() == ["find_file", "search_dir"]


def test_a_function_of_the_notebook_becomes_a_skill_and_a_tool(kernel) -> None:
    kernel.execute(
        "def tide(place: str, day: int = 1) -> str:\n"
        '    """Say when the tide is high.\n\n    Args:\n        place: Where.\n    """\n'
        "    print('looking up', place)\n"
        "    return f'06:4{day}'"
    )
    assert kernel.execute("%oh_skills add tide") == "tide is now a skill.\n"
    assert "Say when the tide is high." in kernel.execute("%oh_skills")
    result = tool(kernel, "tide", place="Brest")
    assert result["content"][0]["text"] == "looking up Brest\n06:41"
    cell = "from oh_jupyter.skills.agentskills import *\nprint(tide('Brest', 2))"
    shown = kernel.act("run_ipython", code=cell)["content"]
    assert shown.startswith("looking up Brest\n06:42")
    assert "tide(place: str, day: int = 1) -> str:" in kernel.execute("%oh_skills docs")
    assert kernel.execute("%oh_skills remove tide") == "tide is no longer a skill.\n"
    assert kernel.act("call_tool_mcp", name="tide", arguments={})["observation"] == "error"
    assert kernel.execute("tide('Brest')").endswith("'06:41'")  # the function stays


def test_a_function_of_a_module_and_our_own(kernel) -> None:
    assert kernel.execute("%oh_skills add textwrap:shorten") == "shorten is now a skill.\n"
    result = tool(kernel, "shorten", text="one two three", width=9)
    assert result["content"][0]["text"] == "one [...]"
    assert kernel.act("run_ipython", code="shorten('a b', 5)")["content"].startswith("'a b'")
    kernel.execute("%oh_skills remove shorten")
    assert kernel.execute("'shorten' in globals()") == "False"
    kernel.execute("%oh_skills remove find_file")
    assert "There is no skill 'find_file'" in kernel.execute("%oh_skills find_file")
    kernel.execute("%oh_skills add find_file")
    assert "find_file" in kernel.execute("%oh_skills")


def test_agents_have_the_skills_without_importing_them(kernel) -> None:
    (kernel.directory / "poem.txt").write_text("roses\n")
    shown = kernel.act("run_ipython", code="search_file('roses', 'poem.txt')")["content"]
    assert '[Found 1 matches for "roses" in poem.txt]' in shown


def test_tools_run_while_a_cell_runs_and_do_not_print_into_it(fresh_kernel) -> None:
    (fresh_kernel.directory / "poem.txt").write_text("roses\n")
    outputs: list[str] = []
    code = (
        "import os\nprint('cell begins')\n"
        "while not os.path.exists('go'):\n    pass\nprint('cell ends')"
    )
    cell = fresh_kernel.start(code)
    result = tool(fresh_kernel, "search_file", search_term="roses", file_path="poem.txt")
    assert "Line 1: roses" in result["content"][0]["text"]
    (fresh_kernel.directory / "go").touch()
    assert fresh_kernel.finish(cell)["status"] == "ok"
    while True:
        message = fresh_kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != cell:
            continue
        if message["msg_type"] == "stream":
            outputs.append(message["content"]["text"])
        if message["content"].get("execution_state") == "idle":
            break
    assert "".join(outputs).split("\n")[-2:] == ["cell ends", ""]
    assert "roses" not in "".join(outputs)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("%oh_skills search_d", "search_dir"),
        ("%oh_skills re", "remove"),
        ("%oh_skills remove open", "open_file"),
        ("%oh_skills schema parse_p", "parse_pdf"),
        ("%oh_skills add my_own_fu", "my_own_function"),
    ],
)
def test_completion(kernel, typed: str, expected: str) -> None:
    kernel.execute("def my_own_function(): pass")
    kernel.client.complete(typed, len(typed))
    reply = kernel.client.get_shell_msg(timeout=60)
    while reply["msg_type"] != "complete_reply":
        reply = kernel.client.get_shell_msg(timeout=60)
    assert expected in reply["content"]["matches"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("%oh_skills searchdir", "Did you mean: search_dir"),
        ("%oh_skills add", "%oh_skills [NAME]"),
        ("%oh_skills add nothing_of_this_name", "Write module:function"),
        ("%oh_skills add no_such_module_x:f", "No module named"),
        ("%oh_skills remove nothing", "There is no skill"),
        ("%oh_skills one two three", "%oh_skills [NAME]"),
    ],
)
def test_wrong_input(kernel, line: str, words: str) -> None:
    shown = kernel.execute(line)
    assert words in shown
    assert "Traceback" not in shown


def test_a_tool_is_called_by_name(kernel) -> None:
    kernel.execute("def shout(text: str) -> str:\n    'Say it loudly.'\n    return text.upper()")
    kernel.execute("%oh_skills add shout")
    assert kernel.execute("oh.tool('shout', text='hello')").strip() == "HELLO"
    assert "shoot" in kernel.execute("oh.tool('shoot')")


def test_skill_folders_of_the_workspace_are_listed_and_offered(fresh_kernel) -> None:
    file = fresh_kernel.directory / ".agents" / "skills" / "tides" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: tides\ndescription: Find tides.\n---\nAsk the harbour.\n")
    assert "Find tides." in fresh_kernel.execute("%oh_skills")
    assert "Ask the harbour." in fresh_kernel.execute("%oh_skills tides")
    context = fresh_kernel.execute("print(oh.host.agent_context())")
    assert "- tides: Find tides. (.agents/skills/tides/SKILL.md)" in context
