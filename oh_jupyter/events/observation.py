"""What a runtime answers: one Observation for each Action, with the fields of OpenHands 0.62.

Its client passes every key of ``extras`` to a constructor, so one that it does not know breaks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from oh_jupyter.events.action import EXTENSION, FileEditSource, FileReadSource
from oh_jupyter.events.event import Event, register

__all__ = [
    "OBSERVATIONS",
    "AgentThinkObservation",
    "BrowserOutputObservation",
    "CmdOutputMetadata",
    "CmdOutputObservation",
    "ErrorObservation",
    "FileDownloadObservation",
    "FileEditObservation",
    "FileReadObservation",
    "FileWriteObservation",
    "IPythonRunCellObservation",
    "MCPObservation",
    "NullObservation",
    "Observation",
    "UserRejectObservation",
]

OBSERVATIONS: dict[str, type[Observation]] = {}
"""Every Observation class by its type on the wire; a subclass with a ``kind`` registers itself."""


@dataclass(repr=False, eq=False)
class Observation(Event):
    """What came of an Action. ``kind`` is its type on the wire.

    Attributes:
        content: The text that an agent reads.
        handling: What came before the Action began, where there was anything: who decided on it
            (``decided_by``), for how long it waited for that (``waited_seconds``) and behind
            others (``queued_seconds``), or that it was cancelled before (``never_began``). It is
            not in OpenHands.
    """

    content: str
    handling: dict[str, Any] | None = field(
        default=None, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )

    def __init_subclass__(cls) -> None:
        register(cls, OBSERVATIONS)

    @property
    def message(self) -> str:
        """The content, where a type has nothing shorter to say."""
        return super().message or self.content

    @property
    def success(self) -> bool | None:
        """Whether it worked, for the two types that say so on the wire; else None."""
        return None


@dataclass
class CmdOutputMetadata:
    """What the shell said at its prompt, out of band.

    Attributes:
        exit_code: Exit status; -1 while the command is still running.
        pid: Process id of the last background job; -1 if there was none.
        username: Who the shell runs as.
        hostname: Where it runs.
        working_dir: Its working directory.
        py_interpreter_path: The ``python`` on its PATH.
        prefix: What belongs before the content, for agents.
        suffix: What belongs after the content, for agents.
    """

    exit_code: int = -1
    pid: int = -1
    username: str | None = None
    hostname: str | None = None
    working_dir: str | None = None
    py_interpreter_path: str | None = None
    prefix: str = ""
    suffix: str = ""


@dataclass(repr=False, eq=False)
class CmdOutputObservation(Observation):
    """The output of a shell command.

    Attributes:
        command: The command, as it was run.
        metadata: What the shell said at its prompt.
        hidden: The command was marked hidden.
    """

    kind: ClassVar[str] = "run"
    says: ClassVar[str] = "Command `{self.command}` executed with exit code {self.exit_code}."

    command: str = ""
    metadata: CmdOutputMetadata = field(default_factory=CmdOutputMetadata)
    hidden: bool = False

    @property
    def exit_code(self) -> int:
        """Exit status; -1 while the command is still running."""
        return self.metadata.exit_code

    @property
    def success(self) -> bool:
        """Whether the exit status is 0."""
        return self.exit_code == 0


@dataclass(repr=False, eq=False)
class IPythonRunCellObservation(Observation):
    """The output of a cell.

    Attributes:
        code: The cell.
        image_urls: Its images as data URLs, or None.
    """

    kind: ClassVar[str] = "run_ipython"
    says: ClassVar[str] = "Code executed in IPython cell."

    code: str = ""
    image_urls: list[str] | None = None

    @property
    def success(self) -> bool:
        """Always true: an exception is output, as in the protocol."""
        return True


@dataclass(repr=False, eq=False)
class FileReadObservation(Observation):
    """The content of a file.

    Attributes:
        path: The file, absolute.
        impl_source: Who rendered it.
    """

    kind: ClassVar[str] = "read"
    says: ClassVar[str] = "I read the file {self.path}."

    path: str = ""
    impl_source: FileReadSource = "default"


@dataclass(repr=False, eq=False)
class FileWriteObservation(Observation):
    """A file was written; the content is empty.

    Attributes:
        path: The file, absolute.
    """

    kind: ClassVar[str] = "write"
    says: ClassVar[str] = "I wrote to the file {self.path}."

    path: str = ""


@dataclass(repr=False, eq=False)
class FileEditObservation(Observation):
    """What an edit did, or ``ERROR:`` and why it did nothing.

    Attributes:
        path: The file.
        prev_exist: Whether it existed before (always false for editor commands, as in
            the protocol).
        old_content: The text that was to be replaced.
        new_content: The text that was to be put there.
        impl_source: Who made the edit.
        diff: Unified diff of the file, without context lines.
        _diff_cache: Always None; a key of the protocol.
        context_diff: The same diff with context lines, for people; None unless the edit was made
            in this process. It is not sent.
    """

    kind: ClassVar[str] = "edit"
    says: ClassVar[str] = "I edited the file {self.path}."

    path: str = ""
    prev_exist: bool = False
    old_content: str | None = None
    new_content: str | None = None
    impl_source: FileEditSource = "oh_aci"
    diff: str | None = None
    _diff_cache: str | None = None
    context_diff: str | None = field(default=None, init=False, repr=False, compare=False)


@dataclass(repr=False, eq=False)
class BrowserOutputObservation(Observation):
    """What a page looked like after a browser action.

    Attributes:
        url: Address of the active page.
        trigger_by_action: ``browse`` or ``browse_interactive``.
        screenshot: Viewport as a PNG data URL, or "".
        screenshot_path: Where it was saved, or None.
        set_of_marks: The same with numbered boxes.
        error: Whether the last browser action failed.
        goal_image_urls: Images of an evaluation task's goal.
        open_pages_urls: Addresses of the tabs.
        active_page_index: Which of them is active.
        dom_object: Always empty on the wire.
        axtree_object: The accessibility tree, where it was asked for.
        extra_element_properties: Properties by bid, where the tree was asked for.
        last_browser_action: The calls that were made.
        last_browser_action_error: Why they failed, or "".
        focused_element_bid: bid of the element that has the focus.
        filter_visible_only: Whether the tree in the content leaves out what is not
            visible.
    """

    kind: ClassVar[str] = "browse"
    says: ClassVar[str] = "Visited {self.url}"

    url: str = ""
    trigger_by_action: str = ""
    screenshot: str = field(default="", repr=False)
    screenshot_path: str | None = None
    set_of_marks: str = field(default="", repr=False)
    error: bool = False
    goal_image_urls: list[str] = field(default_factory=list)
    open_pages_urls: list[str] = field(default_factory=list)
    active_page_index: int = -1
    dom_object: dict[str, Any] = field(default_factory=dict, repr=False)
    axtree_object: dict[str, Any] = field(default_factory=dict, repr=False)
    extra_element_properties: dict[str, Any] = field(default_factory=dict, repr=False)
    last_browser_action: str = ""
    last_browser_action_error: str = ""
    focused_element_bid: str = ""
    filter_visible_only: bool = False


@dataclass(repr=False, eq=False)
class FileDownloadObservation(Observation):
    """A browser action downloaded a file.

    Attributes:
        file_path: Where it was saved.
    """

    kind: ClassVar[str] = "download"
    says: ClassVar[str] = "Downloaded the file at location: {self.file_path}"

    file_path: str = ""


@dataclass(repr=False, eq=False)
class ErrorObservation(Observation):
    """An Action could not be carried out; the content says why.

    Attributes:
        error_id: A name for the kind of error, or "".
    """

    kind: ClassVar[str] = "error"

    error_id: str = ""


@dataclass(repr=False, eq=False)
class MCPObservation(Observation):
    """The result of an MCP tool, as JSON text.

    Attributes:
        name: The tool's name.
        arguments: Its arguments.
    """

    kind: ClassVar[str] = "mcp"

    name: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(repr=False, eq=False)
class NullObservation(Observation):
    """Nothing to observe."""

    kind: ClassVar[str] = "null"
    says: ClassVar[str] = "No observation"


@dataclass(repr=False, eq=False)
class AgentThinkObservation(Observation):
    """A thought was noted."""

    kind: ClassVar[str] = "think"


@dataclass(repr=False, eq=False)
class UserRejectObservation(Observation):
    """The person declined the Action."""

    kind: ClassVar[str] = "user_rejected"
