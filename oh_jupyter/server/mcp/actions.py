"""The runtime's Actions as tools: what an agent does in a shell, in cells, in files, on pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oh_jupyter.server.mcp.cell_text import raised
from oh_jupyter.server.mcp.kernel import Kernel
from oh_jupyter.server.mcp.results import Result, of_observation
from oh_jupyter.server.mcp.toolbox import Caller, Tool, schema

__all__ = ["action_tools"]

_PICTURE = {
    "type": "string",
    "enum": ["screenshot", "set_of_marks", "none"],
    "default": "screenshot",
    "description": "The picture of the page to return; set_of_marks has the bids of elements "
    "drawn on it.",
}

_RISKS = {"low": 0, "medium": 1, "high": 2}

_RISK = {
    "type": "string",
    "enum": list(_RISKS),
    "description": "How risky you think this is; the person may be asked before a risky action.",
}

_TIMEOUT = {
    "type": "number",
    "exclusiveMinimum": 0,
    "description": "Seconds after which it is given up. Without it there is no limit.",
}


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _line(description: str, default: int) -> dict[str, Any]:
    return {"type": "integer", "default": default, "description": description}


_RUN = schema(
    "command",
    command=_string(
        "The bash command; one at a time, joined by && or ; if there are several. With is_input, "
        "the text to type, or a control key such as C-c. Empty: more output of the command that "
        "is still running."
    ),
    is_input={
        "type": "boolean",
        "default": False,
        "description": "Send it to the command that is running instead of the prompt.",
    },
    blocking={
        "type": "boolean",
        "default": False,
        "description": "Wait for the end even if nothing is printed for a while.",
    },
    is_static={
        "type": "boolean",
        "default": False,
        "description": "Run in a fresh shell that is thrown away, beside the shared one.",
    },
    cwd=_string("Working directory of a static command."),
    timeout=_TIMEOUT,
    security_risk=_RISK,
)

_CELL = schema("code", code=_string("The cell."), timeout=_TIMEOUT, security_risk=_RISK)

_READ = schema(
    "path",
    path=_string("The file; a relative path starts at the shell's working directory."),
    start=_line("First line, counted from 0.", 0),
    end=_line("Line after the last, or -1 for the end of the file.", -1),
)

_WRITE = schema(
    "path",
    "content",
    path=_string("The file; directories above it are made."),
    content=_string("The lines to put there."),
    start=_line("First line to replace, counted from 0.", 0),
    end=_line("Line after the last to replace, or -1 for the end of the file.", -1),
    security_risk=_RISK,
)

_EDIT = schema(
    "command",
    "path",
    command={
        "type": "string",
        "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
        "description": "view: numbered lines of a file, or two levels of a directory. create: a "
        "new file with file_text. str_replace: old_str, which must be there exactly once, by "
        "new_str. insert: new_str after line insert_line. undo_edit: take the last edit of the "
        "file back.",
    },
    path=_string("Absolute path of the file or directory."),
    view_range={
        "type": "array",
        "items": {"type": "integer"},
        "minItems": 2,
        "maxItems": 2,
        "description": "For view: first and last line, counted from 1; -1 is the end.",
    },
    file_text=_string("For create: the text of the file."),
    old_str=_string("For str_replace: the text to replace, with enough around it to be unique."),
    new_str=_string("For str_replace and insert: the text to put there."),
    insert_line={
        "type": "integer",
        "minimum": 0,
        "description": "For insert: the line after which; 0 is the top.",
    },
    security_risk=_RISK,
)

_BROWSE = schema(
    "url", url=_string("The address."), picture=_PICTURE, security_risk=_RISK, timeout=_TIMEOUT
)

_INTERACT = schema(
    "browser_actions",
    browser_actions=_string(
        "Calls, one a line, of BrowserGym's action language: goto('url'), go_back(), "
        "click('bid'), fill('bid', 'text'), select_option('bid', 'option'), press('bid', "
        "'Enter'), hover('bid'), scroll(0, 200), upload_file('bid', 'path'), new_tab(), "
        "tab_focus(0), tab_close(), noop(1000)."
    ),
    picture=_PICTURE,
    security_risk=_RISK,
    timeout=_TIMEOUT,
)

_REST_OF_OUTPUT = "Put output into a file by > and read parts of it."
_REST_OF_FILE = "Read a part by start and end, which count lines from 0; of long lines, by run."
_REST_OF_VIEW = "View a part by view_range."
_REST_OF_PAGE = (
    "Go through it by browse_interactive with scroll(0, 1000), or fetch it into a file by run."
)

_TOOLS: tuple[tuple[str, str, dict[str, Any], dict[str, bool], str], ...] = (
    (
        "run",
        "Run a bash command in the shell that person and agent share; working directory, "
        "variables and background jobs stay. A command that goes on silently is reported as "
        "running: fetch more output with an empty command, answer it with is_input, or stop it "
        "with C-c.",
        _RUN,
        {"destructiveHint": True, "openWorldHint": True},
        _REST_OF_OUTPUT,
    ),
    (
        "run_ipython",
        "Run a cell in the notebook's kernel: its variables are the person's, who sees it run. "
        "Magics and !commands work, plots come back as images.",
        _CELL,
        {"destructiveHint": True, "openWorldHint": True},
        "Keep it in a variable and print parts of it.",
    ),
    (
        "read",
        "Read a text file, or look at an image or a PDF.",
        _READ,
        {"readOnlyHint": True},
        _REST_OF_FILE,
    ),
    (
        "write",
        "Write a file, or replace a range of its lines; every line ends in a newline. The edit "
        "can be undone.",
        _WRITE,
        {"destructiveHint": True},
        _REST_OF_FILE,
    ),
    (
        "edit",
        "View, create and edit files with an editor that checks what it does, shows the result, "
        "and keeps a history that the person can undo.",
        _EDIT,
        {"destructiveHint": True},
        _REST_OF_VIEW,
    ),
    (
        "browse",
        "Open a page in the shared browser and read it as text, with a screenshot.",
        _BROWSE,
        {"openWorldHint": True},
        _REST_OF_PAGE,
    ),
    (
        "browse_interactive",
        "Act on the page in the shared browser by the bids of its elements, and get its "
        "accessibility tree with the bids for the next step, and a screenshot.",
        _INTERACT,
        {"destructiveHint": True, "openWorldHint": True},
        _REST_OF_PAGE,
    ),
)


def action_tools(kernel: Kernel) -> list[Tool]:
    """The Actions of a kernel's runtime as tools.

    Args:
        kernel: The kernel.

    Returns:
        The tools, under the names that the Actions have.
    """
    return [_tool(kernel, *described) for described in _TOOLS]


def _tool(
    kernel: Kernel,
    kind: str,
    description: str,
    wanted: dict[str, Any],
    hints: dict[str, bool],
    rest: str,
) -> Tool:
    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        args = dict(arguments)
        timeout = args.pop("timeout", None)
        picture = args.pop("picture", "screenshot")
        if "security_risk" in args:
            args["security_risk"] = _RISKS[args["security_risk"]]
        if kind == "run_ipython":
            found = await kernel.run_cell(args, timeout)
            shown = of_observation(found["observation"])
            return {**shown, "isError": shown["isError"] or raised(found["outputs"])}
        asked, args = _action(kind, args)
        observation: Mapping[str, Any] = await kernel.act(asked, args, timeout)
        return of_observation(observation, () if picture == "none" else (picture,))

    return Tool(kind, description, wanted, call, hints, rest)


def _action(kind: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The Action of a tool: a view of a range is, in the protocol, a read."""
    if kind == "edit":
        view_range = args.pop("view_range", None)
        if args["command"] == "view" and view_range is not None:
            path = args["path"]
            return "read", {"path": path, "view_range": view_range, "impl_source": "oh_aci"}
    return kind, args
