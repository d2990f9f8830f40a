"""Choices and texts of the persona of Jupyter AI; test_lab_persona.py has a real chat."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oh_jupyter.agents import AgentTurn
from oh_jupyter.errors import KernelNotFoundError
from oh_jupyter.kernel.control.broadcast import turn_reply
from oh_jupyter.mcp_tools.notebooks import OpenNotebook
from oh_jupyter.operations.agents import Step, Turn, WaitingAction
from oh_jupyter.server.jupyter_ai.notebook_choice import choose_notebook
from oh_jupyter.server.jupyter_ai.turn_text import MAX_FILES, turn_text


def opened(*paths: str) -> list[OpenNotebook]:
    return [OpenNotebook(path, f"kernel of {path}", "python3", "idle") for path in paths]


@pytest.mark.parametrize(
    ("paths", "attached", "last", "chat", "chosen"),
    [
        (["a.ipynb"], [], None, "talk.chat", "a.ipynb"),
        (["a.ipynb", "b.ipynb"], ["data.csv", "b.ipynb"], "a.ipynb", "talk.chat", "b.ipynb"),
        (["a.ipynb", "b.ipynb"], [], "b.ipynb", "talk.chat", "b.ipynb"),
        (["a.ipynb", "x/b.ipynb"], [], None, "x/talk.chat", "x/b.ipynb"),
        (["a.ipynb", "x/b.ipynb"], [], "closed.ipynb", "talk.chat", "a.ipynb"),
    ],
    ids=["the only one", "attached", "the last one", "beside the chat", "the last is closed"],
)
def test_the_notebook_of_a_message(paths, attached, last, chat, chosen) -> None:
    assert choose_notebook(opened(*paths), attached, last, chat).path == chosen


@pytest.mark.parametrize(
    ("paths", "attached", "words"),
    [
        ([], [], "No notebook is open"),
        (["a.ipynb", "b.ipynb"], [], r"Several notebooks are open \(a.ipynb, b.ipynb\). Attach"),
        (["a.ipynb"], ["b.ipynb"], "b.ipynb has no running kernel: open it"),
    ],
    ids=["none", "several", "attached but closed"],
)
def test_a_message_that_names_no_notebook(paths, attached, words) -> None:
    with pytest.raises(KernelNotFoundError, match=words):
        choose_notebook(opened(*paths), attached, None, "talk.chat")


def test_a_notebook_without_a_kernel_is_not_open() -> None:
    with pytest.raises(KernelNotFoundError, match="No notebook is open"):
        choose_notebook([OpenNotebook("a.ipynb", None, "", "")], [], None, "talk.chat")


def turn(stop_reason: str = "", **fields: Any) -> Turn:
    return replace(turn_reply(AgentTurn("scripted", "", stop_reason=stop_reason)), **fields)


def step(title: str, status: str = "completed", arguments: str = "") -> Step:
    return Step(title, status, arguments, "", [])


def test_texts_and_steps_are_in_their_order() -> None:
    parts = [
        "I look.\n",
        step("mcp__oh__run_ipython", arguments="code: df.head()\nx"),
        step("Write a`b", "failed"),
        step("make", "in_progress", "command: make"),
        "Done.",
    ]
    assert turn_text(turn(parts=parts)) == (
        "I look.\n\n- ✓ `run_ipython` `code: df.head()`\n- ✗ ``Write a`b``\n"
        "- … `make` `command: make`\n\nDone."
    )


def test_a_step_that_the_end_of_the_turn_left_open() -> None:
    shown = turn_text(turn(parts=[step("make", "in_progress")], stop_reason="cancelled"))
    assert shown == "- ○ `make`\n\n*Stopped.*"


def test_pending_actions_and_notices_are_shown() -> None:
    waiting = [WaitingAction(1, "sudo id\nmore", "it becomes another user")]
    shown = turn_text(turn(parts=["x"], notices=["It is silent."]), waiting)
    assert "**Waits for your approval** in the notebook or its panel: `sudo id`" in shown
    assert shown.endswith("(it becomes another user)\n\n*It is silent.*")


def test_an_ended_turn_names_the_files_that_run() -> None:
    acts = {"/w/Makefile": "you run make", "/w/a/conftest.py": "you run pytest"}
    shown = turn_text(turn(stop_reason="end_turn", changed_files=list(acts), runs_when=acts))
    assert shown.endswith(
        "- `Makefile` · runs when you run make\n- `conftest.py` · runs when you run pytest"
    )


def test_an_ended_turn_names_its_changes() -> None:
    shown = turn_text(turn(stop_reason="end_turn", changed_files=["/w/a.py"]))
    assert shown == "Changed `a.py`. `/undo` undoes the turn."
    many = [f"{number}.txt" for number in range(MAX_FILES + 2)]
    shown = turn_text(turn(stop_reason="cancelled", changed_by_commands=many))
    assert shown.startswith("*Stopped.*\n\nChanged `0.txt`")
    assert " and 2 more" in shown
