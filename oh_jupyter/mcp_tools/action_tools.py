"""The runtime's Actions as tools: shell, cells, files and pages."""

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
from oh_jupyter.events.actor import scope_of_action
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.mcp_tools.results import Result, kept_in, of_observation, raised, result
from oh_jupyter.mcp_tools.run_queue import BEGIN_SECONDS
from oh_jupyter.mcp_tools.toolbox import Caller, McpTool
from oh_jupyter.mcp_tools.variable_content import HINT, with_content, with_literals
from oh_jupyter.schema import Schema, fields_schema

RUN_REPORT_SECONDS = 30.0  # an agent has its turn back then, although its command still prints
_RUN_EXTENSIONS = {"script": True, "report_after": RUN_REPORT_SECONDS, "keep_output": True}

_RISKS = {"low": 0, "medium": 1, "high": 2}

_SHARED: dict[str, Schema] = {
    "timeout": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Seconds; default: no limit.",
    },
    "picture": {
        "type": "string",
        "enum": ["screenshot", "set_of_marks", "none"],
        "default": "screenshot",
        "description": "Picture to return; set_of_marks shows the bids.",
    },
    "security_risk": {
        "type": "string",
        "enum": list(_RISKS),
        "description": "Your estimate.",
    },
}
"""Arguments that are not fields of the Action, or have other values there."""

_CHANGES = {"destructiveHint": True}
_CHANGES_THE_WORLD = {"destructiveHint": True, "openWorldHint": True}
_REST_OF_FILE = "Read a part with start and end, which count lines from 0, or long lines with run."
_REST_OF_PAGE = (
    "Scroll with browse_interactive and scroll(0, 1000), or download it to a file with run."
)


@dataclass(frozen=True)
class ActionTool:
    """An Action as a tool; the Action's class documents its arguments."""

    action: type[Action]
    arguments: tuple[str, ...]  # fields and shared arguments that agents see
    description: str
    hints: Mapping[str, bool]
    title: str  # for people
    rest: str  # how an agent gets the omitted part of a long result
    overrides: Mapping[str, Schema] = field(default_factory=dict)  # of properties, by argument
    required: tuple[str, ...] = ()  # in addition to those of the class

    def schema(self) -> Schema:
        """Return the JSON schema of the arguments."""
        own = [name for name in self.arguments if name not in _SHARED]
        schema = fields_schema(self.action, own, merge_unions=True)
        properties = {name: _plain(field) for name, field in schema["properties"].items()}
        for name, override in self.overrides.items():
            properties[name] = {**properties[name], **override}
        for name in self.required:
            properties[name].pop("default", None)
        shared = {name: _SHARED[name] for name in self.arguments if name in _SHARED}
        required = [*schema.get("required", ()), *self.required]
        return {**schema, "properties": {**properties, **shared}, "required": required}


def _plain(schema: Schema) -> Schema:
    """Return the schema of an argument that is omitted rather than null."""
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
        "Run a bash command in the shell that you share with the person; working directory, "
        "variables and background jobs persist. A command that is silent for 10 s or runs for "
        "30 s is reported as running: an empty command gets more output, is_input sends input, "
        "C-c stops it.",
        _CHANGES_THE_WORLD,
        "Run a command",
        "Redirect output to a file with > and read parts of it.",
        {
            "command": {
                "description": "The bash command, or several lines as a script. With is_input, the "
                "text to type, or a control key such as C-c. Empty: more output."
            }
        },
    ),
    ActionTool(
        IPythonRunCellAction,
        ("code", "timeout", "security_risk"),
        "Run a cell in the notebook's kernel, with the person's variables; the person sees it run. "
        "Magics and !commands work, plots are returned as images.",
        _CHANGES_THE_WORLD,
        "Run code",
        "Store it in a variable and print parts of it.",
    ),
    ActionTool(
        FileReadAction,
        ("path", "start", "end"),
        "Read a text file, or view an image or a PDF.",
        {"readOnlyHint": True},
        "Read a file",
        _REST_OF_FILE,
    ),
    ActionTool(
        FileWriteAction,
        ("path", "content", "start", "end", "security_risk"),
        "Write a file, or replace a range of its lines; every line ends in a newline. The edit "
        "can be undone.",
        _CHANGES,
        "Write a file",
        _REST_OF_FILE,
        {
            "path": {"description": "The file; missing parent directories are created."},
            "content": {"description": f"New text, {HINT}."},
        },
    ),
    ActionTool(
        FileEditAction,
        ("command", "path", "file_text", "old_str", "new_str", "insert_line", "security_risk"),
        "View, create and edit files; the result is shown, and edits can be undone.",
        _CHANGES,
        "Edit a file",
        "View a part with view_range.",
        {
            "command": {
                "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
                "description": "view: numbered lines of a file, or two levels of a directory. "
                "create: a file with file_text. str_replace: replace old_str, which must occur "
                "once, by new_str. insert: new_str after line insert_line. undo_edit: the last "
                "edit of the file.",
            },
            "path": {"description": "The file or directory."},
            "file_text": {"description": "For create."},
            "old_str": {"description": "For str_replace."},
            "new_str": {"description": "For str_replace and insert."},
            "insert_line": {
                "type": "integer",
                "minimum": 0,
                "description": "For insert; 0 is the top.",
            },
        },
        required=("command",),
    ),
    ActionTool(
        BrowseURLAction,
        ("url", "picture", "security_risk", "timeout"),
        "Open a page in the shared browser and read it as text, with a screenshot.",
        {
            "readOnlyHint": False,  # the person sees the page, too
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": True,
        },
        "Open a page",
        _REST_OF_PAGE,
    ),
    ActionTool(
        BrowseInteractiveAction,
        ("browser_actions", "picture", "security_risk", "timeout"),
        "Act on the page in the shared browser by the bids of its elements; returns its "
        "accessibility tree with the bids for the next step, and a screenshot.",
        _CHANGES_THE_WORLD,
        "Act on a page",
        _REST_OF_PAGE,
        {
            "browser_actions": {
                "description": "Calls, one a line, of BrowserGym's action language: goto('url'), "
                "go_back(), click('bid'), fill('bid', 'text' or 'variable:NAME'), "
                "select_option('bid', 'option'), press('bid', 'Enter'), hover('bid'), "
                "scroll(0, 200), upload_file('bid', 'path'), new_tab(), tab_focus(0), "
                "tab_close(), noop(1000). handle_dialog(accept=True, "
                "text='') before the call that opens a dialog (confirm, prompt, leaving a page) "
                "answers it; otherwise dialogs are dismissed. find('text'), page_text(0)."
            }
        },
    ),
)

_VIEW_RANGE = {
    "type": "array",
    "items": {"type": "integer"},
    "minItems": 2,
    "maxItems": 2,
    "description": "For view: first and last line, from 1; -1 is the end.",
}
"""An argument of the Action ``read`` in the protocol."""


def action_tools(kernel: Kernel) -> list[McpTool]:
    """Return the Actions of a kernel's runtime as tools with the Actions' names."""
    return [_tool(kernel, each) for each in _TOOLS]


def _tool(kernel: Kernel, described: ActionTool) -> McpTool:
    kind = described.action.kind

    async def call(arguments: dict[str, Any], caller: Caller) -> Result:
        args = dict(arguments)
        timeout = args.pop("timeout", None)
        picture = args.pop("picture", "screenshot")
        if "security_risk" in args:
            args["security_risk"] = _RISKS[args["security_risk"]]
        if kind == IPythonRunCellAction.kind:
            done = await kernel.run_cell(args, timeout, begin_within=BEGIN_SECONDS)
            shown = of_observation(done.observation)
            failed = shown["isError"] or raised(done.outputs)
            return result(*shown["content"], kept_in(done.file), is_error=failed)
        if kind == CmdRunAction.kind:
            refuse_idle_cwd(args.get("cwd"), args.get("is_static", False))
        args = await with_content(kernel, args, "content", "file_text", "new_str")
        if kind == BrowseInteractiveAction.kind:
            args["browser_actions"] = await with_literals(kernel, args["browser_actions"])
        name, args = _action(kind, args)
        options = dict(_RUN_EXTENSIONS) if kind == CmdRunAction.kind else {}
        if picture == "none":
            options["picture"] = False
        observation: Mapping[str, Any] = await kernel.act(name, args, timeout, options)
        return of_observation(observation, () if picture == "none" else (picture,))

    schema = described.schema()
    if described.action is FileEditAction:
        schema["properties"]["view_range"] = _VIEW_RANGE
    return McpTool(
        kind,
        described.description,
        schema,
        call,
        described.hints,
        described.rest,
        title=described.title,
        scope=scope_of_action(kind),
    )


def _action(kind: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the Action of a tool; in the protocol, a view of a range is a read."""
    if kind == FileEditAction.kind:
        view_range = args.pop("view_range", None)
        if args["command"] == "view" and view_range is not None:
            path = args["path"]
            return "read", {"path": path, "view_range": view_range, "impl_source": "oh_aci"}
    return kind, args
