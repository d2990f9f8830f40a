"""Titles of Actions."""

from __future__ import annotations

import pytest

from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
    MCPAction,
)
from oh_jupyter.events.title import title


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (CmdRunAction("make test\n"), "make test"),
        (CmdRunAction("cd a &&\nmake", thought="Build it."), "cd a && …"),
        (CmdRunAction("{ ls; }", title="ls"), "ls"),
        (CmdRunAction(""), ""),
        (IPythonRunCellAction("import pandas\n\n# load\ndf = read('x')"), "df = read('x')"),
        (IPythonRunCellAction("x = 1\ny = 2"), "x = 1 …"),
        (IPythonRunCellAction("import os"), "import os"),
        (FileReadAction("a.txt"), "read a.txt"),
        (FileReadAction("a\nb"), "read a …"),
        (FileWriteAction("a.txt", "x"), "write a.txt"),
        (FileEditAction("/w/a.txt", command="str_replace"), "str_replace /w/a.txt"),
        (FileEditAction("/w/a.txt", content="x"), "write /w/a.txt"),
        (FileEditAction("/w/a.ipynb", command="notebook_edit"), "edit cells of a.ipynb"),
        (BrowseURLAction("http://a.example"), "open http://a.example"),
        (BrowseInteractiveAction('click("1")\nnoop()'), 'click("1") …'),
        (MCPAction("search"), "Calling the MCP tool: search"),
    ],
)
def test_a_title_is_one_line_about_the_action(action: Action, shown: str) -> None:
    assert title(action) == shown


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (CmdRunAction("make test\n"), "make test"),
        (CmdRunAction("ls", thought="Look around.\nThen go."), "Look around."),
        (IPythonRunCellAction("import pandas\n\n# load\ndf = read('x')"), "df = read('x')"),
        (IPythonRunCellAction("import os"), "import os"),
        (FileWriteAction("a.txt", "x"), "write a.txt"),
    ],
)
def test_a_turn_is_named_by_its_first_action(action: Action, shown: str) -> None:
    assert title(action, purpose=True) == shown


def test_a_title_names_paths_relative_to_the_workspace() -> None:
    assert title(FileWriteAction("/w/sub/a.txt", "x"), "/w") == "write sub/a.txt"
    assert title(FileReadAction("/other/a.txt"), "/w") == "read /other/a.txt"
    assert title(FileEditAction("/w/a.txt", command="insert"), "/w") == "insert a.txt"
    assert title(CmdRunAction("cat /w/a.txt"), "/w") == "cat /w/a.txt"
