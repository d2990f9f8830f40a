"""The runtime's Actions as tools: what an agent does in a shell, in cells, in files, on pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from oh_jupyter.events.action import refuse_idle_cwd
from oh_jupyter.schema import Schema, fields_schema
from oh_jupyter.server.mcp.kernel import Kernel
from oh_jupyter.server.mcp.results import Result, of_observation, raised
from oh_jupyter.server.mcp.toolbox import Caller, Tool

_RISKS = {"low": 0, "medium": 1, "high": 2}

_SHARED: dict[str, Schema] = {
    "timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Seconds after which it is given up. Without it there is no limit.",
    },
    "picture": {
        "type": "string",
        "enum": ["screenshot", "set_of_marks", "none"],
        "default": "screenshot",
        "description": "The picture of the page to return; set_of_marks has the bids of elements "
        "drawn on it.",
    },
    "security_risk": {
        "type": "string",
        "enum": list(_RISKS),
        "description": "How risky you think this is; the person may be asked before a risky "
        "action.",
    },
}
"""Arguments that are no fields of the Action, or whose values are other ones there."""

_CHANGES = {"destructiveHint": True}
_CHANGES_THE_WORLD = {"destructiveHint": True, "openWorldHint": True}
_REST_OF_FILE = "Read a part by start and end, which count lines from 0; of long lines, by run."
_REST_OF_PAGE = (
    "Go through it by browse_interactive with scroll(0, 1000), or fetch it into a file by run."
)


@dataclass(frozen=True)
class ActionTool:
    """How an Action is offered as a tool; its arguments are described where its class is.

    Attributes:
        offered: Its fields that an agent is told of, and shared arguments.
        rest: How an agent gets what is left out of too long a result.
        said_otherwise: What the schema says otherwise than the class, by argument.
        required: Arguments that must be there beside those that the class requires.
    """

    action: type[Action]
    offered: tuple[str, ...]
    description: str
    hints: Mapping[str, bool]
    rest: str
    said_otherwise: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def schema(self) -> Schema:
        """JSON schema of the arguments."""
        own = [name for name in self.offered if name not in _SHARED]
        schema = fields_schema(self.action, own, merge_unions=True)
        properties = {name: _plain(found) for name, found in schema["properties"].items()}
        for name, said in self.said_otherwise.items():
            properties[name] = {**properties[name], **said}
        for name in self.required:
            properties[name].pop("default", None)
        shared = {name: _SHARED[name] for name in self.offered if name in _SHARED}
        required = [*schema.get("required", ()), *self.required]
        return {**schema, "properties": {**properties, **shared}, "required": required}


def _plain(schema: Schema) -> Schema:
    """The schema of an argument that is left out rather than null."""
    types = schema.get("type")
    if isinstance(types, list):
        types = [name for name in types if name != "null"]
        schema = {**schema, "type": types[0] if len(types) == 1 else types}
    if schema.get("default", "") is None:
        del schema["default"]
    return {**schema, "description": schema["description"].replace("``", "")}


_TOOLS = (
    ActionTool(
        CmdRunAction,
        ("command", "is_input", "blocking", "is_static", "cwd", "timeout", "security_risk"),
        "Run a bash command in the shell that person and agent share; working directory, "
        "variables and background jobs stay. A command that goes on silently is reported as "
        "running: fetch more output with an empty command, answer it with is_input, or stop it "
        "with C-c.",
        _CHANGES_THE_WORLD,
        "Put output into a file by > and read parts of it.",
        {
            "command": {
                "description": "The bash command; one at a time, joined by && or ; if there are "
                "several. With is_input, the text to type, or a control key such as C-c. Empty: "
                "more output of the command that is still running."
            }
        },
    ),
    ActionTool(
        IPythonRunCellAction,
        ("code", "timeout", "security_risk"),
        "Run a cell in the notebook's kernel: its variables are the person's, who sees it run. "
        "Magics and !commands work, plots come back as images.",
        _CHANGES_THE_WORLD,
        "Keep it in a variable and print parts of it.",
    ),
    ActionTool(
        FileReadAction,
        ("path", "start", "end"),
        "Read a text file, or look at an image or a PDF.",
        {"readOnlyHint": True},
        _REST_OF_FILE,
    ),
    ActionTool(
        FileWriteAction,
        ("path", "content", "start", "end", "security_risk"),
        "Write a file, or replace a range of its lines; every line ends in a newline. The edit "
        "can be undone.",
        _CHANGES,
        _REST_OF_FILE,
        {"path": {"description": "The file; directories above it are made."}},
    ),
    ActionTool(
        FileEditAction,
        ("command", "path", "file_text", "old_str", "new_str", "insert_line", "security_risk"),
        "View, create and edit files with an editor that checks what it does, shows the result, "
        "and keeps a history that the person can undo.",
        _CHANGES,
        "View a part by view_range.",
        {
            "command": {
                "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
                "description": "view: numbered lines of a file, or two levels of a directory. "
                "create: a new file with file_text. str_replace: old_str, which must be there "
                "exactly once, by new_str. insert: new_str after line insert_line. undo_edit: "
                "take the last edit of the file back.",
            },
            "path": {"description": "Absolute path of the file or directory."},
            "file_text": {"description": "For create: the text of the file."},
            "old_str": {
                "description": "For str_replace: the text to replace, with enough around it to be "
                "unique."
            },
            "new_str": {"description": "For str_replace and insert: the text to put there."},
            "insert_line": {
                "type": "integer",
                "minimum": 0,
                "description": "For insert: the line after which; 0 is the top.",
            },
        },
        required=("command",),
    ),
    ActionTool(
        BrowseURLAction,
        ("url", "picture", "security_risk", "timeout"),
        "Open a page in the shared browser and read it as text, with a screenshot.",
        {"openWorldHint": True},
        _REST_OF_PAGE,
    ),
    ActionTool(
        BrowseInteractiveAction,
        ("browser_actions", "picture", "security_risk", "timeout"),
        "Act on the page in the shared browser by the bids of its elements, and get its "
        "accessibility tree with the bids for the next step, and a screenshot.",
        _CHANGES_THE_WORLD,
        _REST_OF_PAGE,
        {
            "browser_actions": {
                "description": "Calls, one a line, of BrowserGym's action language: goto('url'), "
                "go_back(), click('bid'), fill('bid', 'text'), select_option('bid', 'option'), "
                "press('bid', 'Enter'), hover('bid'), scroll(0, 200), upload_file('bid', 'path'), "
                "new_tab(), tab_focus(0), tab_close(), noop(1000). handle_dialog(accept=True, "
                "text='') in front of the call that opens a dialog (confirm, prompt, leaving a "
                "page) answers it; without it, one is dismissed. find('text'), page_text(0)."
            }
        },
    ),
)

_VIEW_RANGE = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "For view: first and last line, counted from 1; -1 is the end.",
}
"""In the protocol this belongs to the Action ``read``."""


def action_tools(kernel: Kernel) -> list[Tool]:
    """The Actions of a kernel's runtime as tools, under the names that the Actions have."""
    return [_tool(kernel, offered) for offered in _TOOLS]


def _tool(kernel: Kernel, offered: ActionTool) -> Tool:
    kind = offered.action.kind

    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        args = dict(arguments)
        timeout = args.pop("timeout", None)
        picture = args.pop("picture", "screenshot")
        if "security_risk" in args:
            args["security_risk"] = _RISKS[args["security_risk"]]
        if kind == IPythonRunCellAction.kind:
            found = await kernel.run_cell(args, timeout)
            shown = of_observation(found["observation"])
            return {**shown, "isError": shown["isError"] or raised(found["outputs"])}
        if kind == CmdRunAction.kind:
            refuse_idle_cwd(args.get("cwd"), args.get("is_static", False))
        asked, args = _action(kind, args)
        observation: Mapping[str, Any] = await kernel.act(asked, args, timeout)
        return of_observation(observation, () if picture == "none" else (picture,))

    schema = offered.schema()
    if offered.action is FileEditAction:
        schema["properties"]["view_range"] = _VIEW_RANGE
    return Tool(kind, offered.description, schema, call, offered.hints, offered.rest)


def _action(kind: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The Action of a tool: a view of a range is, in the protocol, a read."""
    if kind == FileEditAction.kind:
        view_range = args.pop("view_range", None)
        if args["command"] == "view" and view_range is not None:
            path = args["path"]
            return "read", {"path": path, "view_range": view_range, "impl_source": "oh_aci"}
    return kind, args
