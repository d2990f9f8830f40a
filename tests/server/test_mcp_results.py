"""An agent's text of an Observation: nothing twice, no frames of libraries."""

from __future__ import annotations

import asyncio

import pytest
from mcp_client import MAJOR

from oh_jupyter.events import (
    BrowserOutputObservation,
    CmdOutputMetadata,
    CmdOutputObservation,
    CmdRunAction,
    ErrorObservation,
    FileEditObservation,
    FileReadObservation,
    IPythonRunCellObservation,
    Observation,
    UserRejectObservation,
)
from oh_jupyter.events.wire import to_wire
from oh_jupyter.mcp_tools.results import fold_library_frames, of_observation, result, text
from oh_jupyter.mcp_tools.seen_lines import SeenLines
from oh_jupyter.runtime.confirmation import REJECTED, Confirmations
from oh_jupyter.runtime.reasons import Reason

LIBRARY = "/env/lib/python3.12/site-packages/pandas/core"
TRACEBACK = f"""\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
File {LIBRARY}/indexes/base.py:3805, in Index.get_loc(self, key)
   3804 try:
-> 3805     return self._engine.get_loc(casted_key)

File index.pyx:167, in pandas._libs.index.IndexEngine.get_loc()

File pandas/_libs/hashtable.pxi:7734, in pandas._libs.hashtable.ObjectTable.get_item()
-> 7734 'Could not get source, probably due dynamically evaluated source code.'

KeyError: 'tide'

The above exception was the direct cause of the following exception:

KeyError                                  Traceback (most recent call last)
Cell In[2], line 1
----> 1 df["tide"]

File {LIBRARY}/frame.py:4102, in DataFrame.__getitem__(self, key)
   4101     return self._getitem_multilevel(key)
-> 4102 indexer = self.columns.get_loc(key)

File {LIBRARY}/indexes/base.py:3812, in Index.get_loc(self, key)
-> 3812     raise KeyError(key) from err

KeyError: 'tide'"""


def test_the_first_lines_of_a_very_long_output_are_shown() -> None:
    observation = {
        "observation": "run",
        "content": "8\n9",
        "extras": {"metadata": {"exit_code": 0, "prefix": "[Only the last lines.]\n"}},
        "oh_jupyter": {"head": "1\n2"},
    }
    (block,) = of_observation(observation)["content"]
    assert block["text"].startswith("1\n2\n[...]\n[Only the last lines.]\n8\n9\n")


def test_frames_of_libraries_are_folded() -> None:
    folded = fold_library_frames(TRACEBACK)
    assert 'Cell In[2], line 1\n----> 1 df["tide"]' in folded
    assert folded.count("KeyError: 'tide'") == 2
    assert "4102 indexer" not in folded
    assert "[2 frames of libraries; the last is pandas/core/indexes/base.py:3812 in Index" in folded
    assert "%tb has all" in folded
    assert "[3 frames of libraries; the last is pandas/_libs/hashtable.pxi" in folded
    assert "Could not get source" not in folded
    own = TRACEBACK[TRACEBACK.rindex("KeyError        ") :].replace(LIBRARY, "/home/me/project")
    assert fold_library_frames(own) == own
    compiled = (
        f"{own}\n\nFile sum.pyx:2, in sum.total()\n      1 def total():\n----> 2     return x"
    )
    assert fold_library_frames(compiled) == compiled
    assert fold_library_frames("no traceback at all\n\nFile x") == "no traceback at all\n\nFile x"


def test_the_exit_code_is_reported_once() -> None:
    metadata = {"exit_code": 3, "suffix": "\n[The command completed with exit code 3.]"}
    observation = {"observation": "run", "content": "x", "extras": {"metadata": metadata}}
    (block,) = of_observation(observation)["content"]
    assert block["text"].count("exit code 3") == 1
    metadata["suffix"] = ""
    (block,) = of_observation(observation)["content"]
    assert block["text"].count("exit code 3") == 1


async def test_an_edit_is_shown_as_a_diff(mcp_connect, jp_root_dir) -> None:
    path = jp_root_dir / "a.py"
    path.write_text("".join(f"x{n} = {n}\n" for n in range(20)))
    edit = {"command": "str_replace", "path": "a.py", "old_str": "x5 = 5", "new_str": "x5 = 6"}
    async with mcp_connect() as session:
        edited = await session.call_tool("edit", edit)
    (block,) = edited.content
    assert block.text == f"The file {path} has been edited.\n@@ -6 +6 @@\n-x5 = 5\n+x5 = 6"


async def test_a_write_is_shown_as_a_diff(mcp_connect, jp_root_dir) -> None:
    path = jp_root_dir / "a.py"
    async with mcp_connect() as session:

        async def write(**arguments: object) -> str:
            done = await session.call_tool("write", {"path": "a.py", **arguments})
            return done.content[0].text

        created = await write(content="x = 1\ny = 2")
        assert created == f"I wrote to the file {path}. It is new."
        assert (
            await write(content="x = 1\ny = 3")
            == f"I wrote to the file {path}.\n@@ -2 +2 @@\n-y = 2\n+y = 3"
        )
        assert (await write(content="x = 1\ny = 3")).endswith("Its text is the same.")
        assert (await write(content="z = 4", start=1, end=2)).endswith("-y = 3\n+z = 4")
        long = await write(content="\n".join(map(str, range(5_000))))
        assert len(long) < 2_500
        assert long.endswith("[... more changed lines ...]")
        path.write_bytes(b"\xef\xbb\xbfold\r\n")
        assert (await write(content="new")).endswith("@@ -1 +1 @@\n-old\n+new")


def test_a_conversation_sees_the_directory_when_it_changes() -> None:
    seen = SeenLines()

    def shown(directory: str) -> str:
        footer = f"[Current working directory: {directory}]\n[Python interpreter: /bin/python]"
        return seen.without(result(text(f"done\n{footer}")))["content"][0]["text"]

    assert shown("/a").endswith("/a]\n[Python interpreter: /bin/python]")
    assert shown("/a") == "done"
    assert shown("/b") == "done\n[Current working directory: /b]"


async def test_sessions_of_clients_do_not_share_their_history(mcp_connect, jp_root_dir) -> None:
    directory = f"[Current working directory: {jp_root_dir}]"

    async def outputs(*commands: str, **arguments: object) -> list[str]:
        async with mcp_connect(**arguments) as session:
            calls = [await session.call_tool("run", {"command": each}) for each in commands]
        return [done.content[0].text for done in calls]

    for _ in range(2):
        first, second, moved = await outputs("echo 1", "echo 2", "mkdir -p sub; cd sub")
        assert directory in first
        assert second == "2\n[The command completed with exit code 0.]"
        assert f"[Current working directory: {jp_root_dir / 'sub'}]" in moved
        assert "interpreter" not in moved
        await outputs("cd ..")
    if MAJOR > 1:  # these calls may be of several conversations
        shown = await outputs("echo 1", "echo 2", transport="sessionless")
        assert all(directory in each for each in shown)


def test_an_undecided_action_is_not_called_rejected(tmp_path) -> None:
    confirmations = Confirmations("always", 0.01, str(tmp_path))
    reasons = [Reason("becomes_other_user")]
    undecided = asyncio.run(confirmations.decide(CmdRunAction("ls"), reasons))
    assert undecided is not None
    shown = of_observation(to_wire(undecided))
    assert shown["isError"]
    assert shown["content"][0]["text"] == (
        "It did not run, since no person has decided. Nobody looked at it within 0.01 s; it waited "
        "because it becomes another user. Nobody has rejected it: tell the person what waits, and "
        "call again when they are there to approve it."
    )
    rejected = {"observation": "user_rejected", "content": REJECTED}
    assert of_observation(rejected)["content"][0]["text"] == REJECTED


@pytest.mark.parametrize(
    ("observation", "is_error"),
    [
        (FileEditObservation("ERROR:\nNo match.", outcome="failed"), True),
        (FileReadObservation("ERROR:\na line of a log"), False),
        (CmdOutputObservation("ERROR: in a log", metadata=CmdOutputMetadata(1)), False),
        (CmdOutputObservation("so far", outcome="timed_out"), False),
        (CmdOutputObservation("ERROR: No command.", outcome="failed"), True),
        (IPythonRunCellObservation("KeyError", outcome="failed"), False),
        (BrowserOutputObservation("", error=True, outcome="timed_out"), True),
        (ErrorObservation("It was cancelled.", outcome="cancelled"), True),
        (UserRejectObservation("No."), True),
    ],
)
def test_errors_are_those_of_outcomes_and_not_of_texts(
    observation: Observation, is_error: bool
) -> None:
    assert of_observation(to_wire(observation))["isError"] is is_error
