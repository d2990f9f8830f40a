"""Observations of a runtime, with the fields of OpenHands 0.62.

OpenHands' client passes every key of ``extras`` to a constructor, so an unknown key breaks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

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
    "Outcome",
    "OutcomeReason",
    "UserRejectObservation",
]

OBSERVATIONS: dict[str, type[Observation]] = {}
"""Observation classes by type on the wire; a subclass with a ``kind`` registers itself."""

Outcome = Literal["done", "failed", "rejected", "cancelled", "timed_out"]
"""End of an Action. A command is done whatever its exit code is."""

OutcomeReason = Literal["", "nothing_runs", "file_not_found", "unanswered"]
"""Reason of an outcome, where a program may act on it; "" for others."""


@dataclass(repr=False, eq=False)
class Observation(Event):
    """Result of an Action. ``kind`` is its type on the wire.

    Attributes:
        content: The text that an agent reads.
        outcome: End of the Action. OpenHands lacks this field.
        reason_code: Reason of the outcome. OpenHands lacks this field.
        handling: Handling of the Action, if any: who decided on the Action (``decided_by``),
            the wait for that decision (``waited_seconds``), the wait behind other Actions
            (``queued_seconds``), or a cancellation before the start (``never_began``), also
            before the decision, when nobody waits for it any more (``withdrawn``); whether
            a command ran in a sandbox (``sandboxed``), where one is set up.
            OpenHands lacks this field.
    """

    content: str
    outcome: Outcome = field(
        default="done", kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    reason_code: OutcomeReason = field(
        default="", kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    handling: dict[str, Any] | None = field(
        default=None, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )

    def __init_subclass__(cls) -> None:
        register(cls, OBSERVATIONS)

    @property
    def message(self) -> str:
        """The type's own message, otherwise the content."""
        return super().message or self.content

    @property
    def failure(self) -> str:
        """Why the Action failed, without the literal ``ERROR:``; "" if it is done."""
        if self.outcome == "done":
            return ""
        return self.content.removeprefix("ERROR:").strip()

    @property
    def edited_paths(self) -> list[str]:
        """Absolute paths of the files that an edit changed, in its order; not of a command's."""
        return []

    @property
    def success(self) -> bool | None:
        """True if the Action succeeded; None for types without this field on the wire."""
        return None


@dataclass
class CmdOutputMetadata:
    """State that the shell reported at its prompt.

    Attributes:
        exit_code: Exit status; -1 while the command is still running.
        pid: Process id of the last background job; -1 if there was none.
        username: User that the shell runs as.
        hostname: Host of the shell.
        working_dir: Its working directory.
        py_interpreter_path: The ``python`` on its PATH.
        prefix: Text for agents before the content.
        suffix: Text for agents after the content.
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
        command: The command as it was run.
        metadata: State that the shell reported at its prompt.
        hidden: The command was marked hidden.
        head: First lines of an output whose beginning is not in the content. OpenHands lacks this
            field.
    """

    kind: ClassVar[str] = "run"
    says: ClassVar[str] = "Command `{self.command}` executed with exit code {self.exit_code}."

    command: str = ""
    metadata: CmdOutputMetadata = field(default_factory=CmdOutputMetadata)
    hidden: bool = False
    head: str = field(default="", kw_only=True, repr=False, compare=False, metadata=EXTENSION)

    @property
    def exit_code(self) -> int:
        """Exit status; -1 while the command is still running."""
        return self.metadata.exit_code

    @property
    def success(self) -> bool:
        """True if the exit status is 0."""
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
        """Always true: an exception counts as output, as in the protocol."""
        return True


@dataclass(repr=False, eq=False)
class FileReadObservation(Observation):
    """The content of a file.

    Attributes:
        path: Absolute path of the file.
        impl_source: Format of the content.
    """

    kind: ClassVar[str] = "read"
    says: ClassVar[str] = "I read the file {self.path}."

    path: str = ""
    impl_source: FileReadSource = "default"


@dataclass(repr=False, eq=False)
class FileWriteObservation(Observation):
    """Confirmation of a written file; the content is empty.

    Attributes:
        path: Absolute path of the file.
        diff: Unified diff of the file without context lines; None for a new file. OpenHands lacks
            this field.
    """

    kind: ClassVar[str] = "write"
    says: ClassVar[str] = "I wrote to the file {self.path}."

    path: str = ""
    diff: str | None = field(
        default=None, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )

    @property
    def edited_paths(self) -> list[str]:
        """Absolute path of the file."""
        return [self.path]


@dataclass(repr=False, eq=False)
class FileEditObservation(Observation):
    """Result of an edit; with the outcome ``failed``, the reason why nothing was changed.

    Attributes:
        path: The file.
        prev_exist: Whether it existed before (always false for editor commands, as in
            the protocol).
        old_content: The text to replace.
        new_content: The replacement.
        impl_source: Kind of the edit.
        diff: Unified diff of the file, without context lines.
        _diff_cache: Always None; a key of the protocol.
        context_diff: The same diff with context lines, for people; None unless the edit was made
            in this process. It is not sent.
        around_excerpts: The content without its excerpts of the file and its advice to review:
            the texts before, between and after them. Where a diff is shown, it takes the place
            of an excerpt. Empty if the content has neither. OpenHands lacks this field.
        notes: Lines for people besides the diff: linting, changes by others, inexact patches.
            OpenHands lacks this field.
        dry_run: Whether nothing was written. OpenHands lacks this field.
        changed_paths: Absolute paths of the changed files, if they are not just ``path``.
            OpenHands lacks this field.
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
    around_excerpts: list[str] = field(
        default_factory=list, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    notes: list[str] = field(
        default_factory=list, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    dry_run: bool = field(
        default=False, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    changed_paths: list[str] = field(
        default_factory=list, kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )

    @property
    def edited_paths(self) -> list[str]:
        """Absolute paths of the file and of those that a patch changed; none after a failure."""
        if self.dry_run or not self.diff:
            return []
        return self.changed_paths or [self.path]


@dataclass(repr=False, eq=False)
class BrowserOutputObservation(Observation):
    """State of the page after a browser action.

    Attributes:
        url: Address of the active page.
        trigger_by_action: ``browse`` or ``browse_interactive``.
        screenshot: Viewport as a PNG data URL, or "".
        screenshot_path: Path of the saved screenshot, or None.
        set_of_marks: The screenshot with numbered boxes.
        error: Whether the last browser action failed.
        goal_image_urls: Images of an evaluation task's goal.
        open_pages_urls: Addresses of the tabs.
        active_page_index: Index of the active tab.
        dom_object: Always empty on the wire.
        axtree_object: The accessibility tree, if requested.
        extra_element_properties: Properties by bid, if the tree was requested.
        last_browser_action: The executed calls.
        last_browser_action_error: Reason of their failure, or "".
        focused_element_bid: bid of the focused element.
        filter_visible_only: Whether the tree in the content omits invisible elements.
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

    def __post_init__(self) -> None:
        """Take a failed browser action for a failure, as in logs of OpenHands."""
        if self.error and self.outcome == "done":
            self.outcome = "failed"


@dataclass(repr=False, eq=False)
class FileDownloadObservation(Observation):
    """Download of a file by a browser action.

    Attributes:
        file_path: Path of the saved file.
    """

    kind: ClassVar[str] = "download"
    says: ClassVar[str] = "Downloaded the file at location: {self.file_path}"

    file_path: str = ""


@dataclass(repr=False, eq=False)
class ErrorObservation(Observation):
    """Failure of an Action; the content gives the reason.

    Attributes:
        error_id: Identifier of the kind of error, or "".
    """

    kind: ClassVar[str] = "error"

    error_id: str = ""
    outcome: Outcome = field(
        default="failed", kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )


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
    """Empty observation."""

    kind: ClassVar[str] = "null"
    says: ClassVar[str] = "No observation"


@dataclass(repr=False, eq=False)
class AgentThinkObservation(Observation):
    """Confirmation of a recorded thought."""

    kind: ClassVar[str] = "think"


@dataclass(repr=False, eq=False)
class UserRejectObservation(Observation):
    """Rejection of the Action by the user, or because nobody answered in time.

    Attributes:
        why: The user's reason, or that nobody answered and what the question was; "" if there is
            none. OpenHands lacks this field.
    """

    kind: ClassVar[str] = "user_rejected"

    outcome: Outcome = field(
        default="rejected", kw_only=True, repr=False, compare=False, metadata=EXTENSION
    )
    why: str = field(default="", kw_only=True, repr=False, compare=False, metadata=EXTENSION)
