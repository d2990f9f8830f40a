"""Actions that a runtime executes, with the fields of OpenHands 0.62's protocol."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, ClassVar, Literal

from oh_jupyter.errors import WireError
from oh_jupyter.events.actor import Actor
from oh_jupyter.events.event import Event, register

__all__ = [
    "ACTIONS",
    "Action",
    "ActionConfirmationStatus",
    "ActionSecurityRisk",
    "BrowseInteractiveAction",
    "BrowseURLAction",
    "CmdRunAction",
    "FileEditAction",
    "FileEditSource",
    "FileReadAction",
    "FileReadSource",
    "FileWriteAction",
    "IPythonRunCellAction",
    "MCPAction",
]


FileReadSource = Literal["default", "oh_aci"]
"""Format of a file's content: plain text, or the editor's numbered view."""

FileEditSource = Literal["oh_aci", "llm_based_edit"]
"""Kind of an edit: an editor command, or a draft to merge."""


EXTENSION = {"extension": True}
"""Metadata of a field that OpenHands lacks: separate on the wire, and omitted if not set."""

ACTIONS: dict[str, type[Action]] = {}
"""Action classes by type on the wire; a subclass with a ``kind`` registers itself."""


class ActionConfirmationStatus(str, Enum):
    """Confirmation state of an Action."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    AWAITING_CONFIRMATION = "awaiting_confirmation"


class ActionSecurityRisk(IntEnum):
    """Risk of an Action as assessed by the agent."""

    UNKNOWN = -1
    LOW = 0
    MEDIUM = 1
    HIGH = 2


@dataclass(kw_only=True, repr=False, eq=False)
class Action(Event):
    """Request to the runtime. ``kind`` is its type on the wire.

    Attributes:
        runnable: Whether a runtime can execute it.
        timeout: Hard time limit in seconds; None for no limit.
        actor: Origin of the request; the server overwrites a client's value.
    """

    runnable: ClassVar[bool] = True

    timeout: float | None = field(default=None, repr=False, compare=False)
    actor: Actor = field(default=Actor(), repr=False, compare=False, metadata=EXTENSION)

    def __init_subclass__(cls) -> None:
        register(cls, ACTIONS)

    def set_hard_timeout(self, value: float | None, blocking: bool | None = True) -> None:
        """Set a hard time limit in seconds; None removes it.

        It also sets a shell command's ``blocking``, unless that is None, as in OpenHands.
        """
        self.timeout = value
        if blocking is not None and isinstance(self, CmdRunAction):
            self.blocking = blocking


@dataclass(repr=False, eq=False)
class CmdRunAction(Action):
    """Run a command in the session's shell, or send input to the running one.

    Attributes:
        command: The command, the text to type, a control key such as ``C-c``, or ""
            to fetch more output of the running command.
        is_input: Send ``command`` to the running command instead of the prompt.
        thought: The agent's reason.
        blocking: Wait for the end even without new output.
        is_static: Run in a separate, temporary shell.
        cwd: Working directory of a static command.
        hidden: Hide it from the agent; its output is not truncated.
        confirmation_state: Whether a person has to approve it.
        security_risk: Risk as assessed by the agent.
        sandbox: Run it in a sandbox, also where the settings do not ask for one.
        exact: For a static command: report the output unchanged and whole, instead of what a
            terminal shows of it. Its programs have no terminal and no input.
        script: Run several lines as one script, where OpenHands' protocol expects one command.
        report_after: Seconds after which a command is reported as running although it prints,
            unless it is ``blocking`` or has a time limit; None for no such limit, as in the
            protocol.
        keep_output: Keep a long output in a file that the content names.
        title: The command as an agent gave it, where ``command`` runs it in a script; the log and
            turns show it for an exact command. Questions to a person show ``command``.
    """

    kind: ClassVar[str] = "run"
    says: ClassVar[str] = "Running command: {self.command}"

    command: str
    is_input: bool = False
    thought: str = ""
    blocking: bool = False
    is_static: bool = False
    cwd: str | None = None
    hidden: bool = False
    confirmation_state: ActionConfirmationStatus = ActionConfirmationStatus.CONFIRMED
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    sandbox: bool = field(default=False, metadata=EXTENSION)
    exact: bool = field(default=False, metadata=EXTENSION)
    script: bool = field(default=False, metadata=EXTENSION)
    report_after: float | None = field(default=None, metadata=EXTENSION)
    keep_output: bool = field(default=False, metadata=EXTENSION)
    title: str = field(default="", metadata=EXTENSION)


def refuse_idle_cwd(cwd: str | None, is_static: bool) -> None:
    """Raise WireError for a ``cwd`` that OpenHands' protocol would silently ignore."""
    if cwd is not None and not is_static:
        raise WireError(
            "cwd is for static commands: add is_static, or put cd DIRECTORY && in front of the "
            "command",
            "args.cwd",
        )


@dataclass(repr=False, eq=False)
class IPythonRunCellAction(Action):
    """Run a cell in the kernel's main shell.

    Attributes:
        code: The cell.
        thought: The agent's reason.
        include_extra: Append the working directory and the interpreter to the output.
        confirmation_state: Whether a person has to approve it.
        security_risk: Risk as assessed by the agent.
        kernel_init_code: Accepted and ignored, as in the protocol.
    """

    kind: ClassVar[str] = "run_ipython"
    says: ClassVar[str] = "Running Python code interactively: {self.code}"

    code: str
    thought: str = ""
    include_extra: bool = True
    confirmation_state: ActionConfirmationStatus = ActionConfirmationStatus.CONFIRMED
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    kernel_init_code: str = ""


@dataclass(repr=False, eq=False)
class FileReadAction(Action):
    """Read a file.

    Attributes:
        path: The file; a relative path is resolved against the shell's working directory.
        start: First line, counted from 0.
        end: Line after the last, or -1 for the end of the file.
        thought: The agent's reason.
        security_risk: Risk as assessed by the agent.
        impl_source: ``default`` for the plain text, ``oh_aci`` for the editor's view.
        view_range: For ``oh_aci``: first and last line, counted from 1, last may be -1.
    """

    kind: ClassVar[str] = "read"
    says: ClassVar[str] = "Reading file: {self.path}"

    path: str
    start: int = 0
    end: int = -1
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    impl_source: FileReadSource = "default"
    view_range: list[int] | None = None


@dataclass(repr=False, eq=False)
class FileWriteAction(Action):
    """Write a file, or replace a range of its lines.

    Attributes:
        path: The file; a relative path is resolved against the shell's working directory.
        content: The new lines.
        start: First line to replace, counted from 0.
        end: Line after the last to replace, or -1 for the end of the file.
        thought: The agent's reason.
        security_risk: Risk as assessed by the agent.
        exact: Store the content as the whole file, without a final newline added to it.
        within: Directory outside of which the file must not be; links are resolved, and "" is the
            workspace. None for any file.
    """

    kind: ClassVar[str] = "write"
    says: ClassVar[str] = "Writing file: {self.path}"

    path: str
    content: str
    start: int = 0
    end: int = -1
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    exact: bool = field(default=False, metadata=EXTENSION)
    within: str | None = field(default=None, metadata=EXTENSION)


@dataclass(repr=False, eq=False)
class FileEditAction(Action):
    """Edit a file with an editor command or a draft to merge.

    Attributes:
        path: The file; an absolute path.
        command: view, create, str_replace, insert or undo_edit; also redo_edit, write (of
            the lines from start to end), apply_patch and notebook_edit.
        file_text: The text of a file to create.
        old_str: The text to replace.
        new_str: The replacement, or the text to insert.
        insert_line: The line after which to insert; a numeric string is accepted.
        content: The draft for ``llm_based_edit``, the lines of write, or the patch.
        start: First line of the range, counted from 1; for a draft, -1 appends.
        end: Last line of the range; -1 is the end of the file.
        thought: The agent's reason.
        security_risk: Risk as assessed by the agent.
        impl_source: Kind of the edit.
        dry_run: Write nothing, but report the result. OpenHands lacks this and the
            following fields; they are written under ``oh_jupyter``, and read there and here.
        enable_linting: Report syntax errors that the edit introduced.
        replace_all: For str_replace: replace every occurrence.
        cell: In a notebook: id or position of a cell.
        edit_mode: For notebook_edit: replace, insert, delete or move.
        cell_type: For notebook_edit: code, markdown or raw.
        to: For notebook_edit with move: the new position of the cell.
        within: Directory outside of which no changed file may be; links are resolved, and "" is
            the workspace. None for any file.
    """

    kind: ClassVar[str] = "edit"

    path: str
    command: str = ""
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | str | None = None
    content: str = ""
    start: int = 1
    end: int = -1
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    impl_source: FileEditSource = "oh_aci"
    dry_run: bool = field(default=False, metadata=EXTENSION)
    enable_linting: bool = field(default=False, metadata=EXTENSION)
    replace_all: bool = field(default=False, metadata=EXTENSION)
    cell: int | str | None = field(default=None, metadata=EXTENSION)
    edit_mode: str = field(default="replace", metadata=EXTENSION)
    cell_type: str | None = field(default=None, metadata=EXTENSION)
    to: int | None = field(default=None, metadata=EXTENSION)
    within: str | None = field(default=None, metadata=EXTENSION)

    @property
    def message(self) -> str:
        """Command and file."""
        return f"Editing file: {self.path} ({self.command or 'draft'})"


@dataclass(repr=False, eq=False)
class BrowseURLAction(Action):
    """Open a page and return its text.

    Attributes:
        url: The address.
        thought: The agent's reason.
        security_risk: Risk as assessed by the agent.
        return_axtree: Also return the accessibility tree as an object.
        picture: Store the screenshot in a file of the workspace.
    """

    kind: ClassVar[str] = "browse"
    says: ClassVar[str] = "Browsing the URL: {self.url}"

    url: str
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    return_axtree: bool = False
    picture: bool = field(default=True, metadata=EXTENSION)


@dataclass(repr=False, eq=False)
class BrowseInteractiveAction(Action):
    """Run browser actions, written in BrowserGym's high-level language.

    Attributes:
        browser_actions: One or more calls, such as ``click("12")``.
        thought: The agent's reason.
        browsergym_send_msg_to_user: The text of a ``send_msg_to_user`` among them.
        security_risk: Risk as assessed by the agent.
        return_axtree: Also return the accessibility tree as an object.
        picture: Store the screenshot in a file of the workspace.
    """

    kind: ClassVar[str] = "browse_interactive"
    says: ClassVar[str] = "Interacting with the browser: {self.browser_actions}"

    browser_actions: str
    thought: str = ""
    browsergym_send_msg_to_user: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN
    return_axtree: bool = False
    picture: bool = field(default=True, metadata=EXTENSION)


@dataclass(repr=False, eq=False)
class MCPAction(Action):
    """Call a tool by its name.

    OpenHands' clients call MCP servers themselves and never send it. Here the runtime
    executes it; its tools are the agent skills.

    Attributes:
        name: The tool's name.
        arguments: Its arguments.
        thought: The agent's reason.
        security_risk: Risk as assessed by the agent.
    """

    kind: ClassVar[str] = "call_tool_mcp"
    says: ClassVar[str] = "Calling the MCP tool: {self.name}"

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    thought: str = ""
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN


class Progress:
    """Thread-safe listener for the progress of an Action; the default does nothing."""

    def begin(self) -> None:
        """Report that the Action starts, after waiting for the shell or the kernel."""

    async def prepare(self) -> None:
        """Prepare the start, once the Action no longer waits."""

    def put_out(self) -> None:
        """Report new output."""


progress: ContextVar[Progress] = ContextVar("progress", default=Progress())  # noqa: B039
"""Listener for the Action of this context."""
