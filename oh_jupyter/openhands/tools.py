"""The SDK's terminal and file_editor on the runtime, and two tools that it does not have."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from openhands.sdk.llm import ImageContent, TextContent
from openhands.sdk.tool import (
    Action,
    DeclaredResources,
    Observation,
    ToolAnnotations,
    ToolDefinition,
    ToolExecutor,
    register_tool,
)
from openhands.tools.file_editor.definition import (
    FileEditorAction,
    FileEditorObservation,
    FileEditorTool,
)
from openhands.tools.terminal.constants import TIMEOUT_MESSAGE_TEMPLATE
from openhands.tools.terminal.definition import (
    _LITERAL_ARG_HINT_TEMPLATE,
    TerminalAction,
    TerminalObservation,
    TerminalTool,
    looks_like_python_literal_argument,
)
from openhands.tools.terminal.env import normalize_terminal_env
from openhands.tools.terminal.metadata import CmdOutputMetadata
from pydantic import Field

from oh_jupyter import events
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.messages import RUNNING_HINT
from oh_jupyter.openhands.connection import Interruptible, connection

if TYPE_CHECKING:
    from openhands.sdk.conversation.state import ConversationState

ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)


class RuntimeExecutor(ToolExecutor, Generic[ActionT, ObservationT]):
    """Base of the executors: an Action of the SDK becomes one of ours, and back."""

    def __init__(self) -> None:
        self.runtime = Interruptible(connection())

    def interrupt(self) -> None:
        """Cancel what the tool has under way."""
        self.runtime.interrupt()


def register(*tools: type[ToolDefinition]) -> None:
    """Register tools by their names; that they take the place of the SDK's own is meant."""
    logger = logging.getLogger(register_tool.__module__)
    before, logger.disabled = logger.disabled, True
    try:
        for tool in tools:
            register_tool(tool.name, tool)
    finally:
        logger.disabled = before


def failed(observation: events.Observation) -> bool:
    """Whether nothing came of an Action: it was refused, rejected, cancelled, or went wrong."""
    if isinstance(observation, events.ErrorObservation | events.UserRejectObservation):
        return True
    if isinstance(observation, events.BrowserOutputObservation):
        return observation.error
    editor = isinstance(observation, events.FileEditObservation | events.FileReadObservation)
    return editor and observation.content.startswith("ERROR:\n")


def contents(text: str, image_urls: Sequence[str] | None = None) -> list[Any]:
    """Text and images of an Observation as the SDK's content."""
    found: list[Any] = [TextContent(text=text)]
    return [*found, ImageContent(image_urls=list(image_urls))] if image_urls else found


_INTERRUPT_SECONDS = 5.0
"""How long a command gets to end by Ctrl-C before a reset replaces the shell."""

_NOTHING_RUNS = "ERROR: No previous running command to interact with."
_COMPLETED = re.compile(r"\n\[The command completed with exit code [^\]]*\]")
_INTERRUPTED = "[The shell is the person's, too, so it was interrupted and not replaced.]\n"
_REPLACED = (
    "[The shell did not react to Ctrl-C and was replaced. Its variables and functions, and what "
    "ran in it, are gone, for the person, too.]\n"
)


class _TerminalExecutor(RuntimeExecutor[TerminalAction, TerminalObservation]):
    def __init__(self, env: Mapping[str, str] | None) -> None:
        super().__init__()
        self._env = env
        self._export_env()

    def __call__(self, action: TerminalAction, conversation: Any = None) -> TerminalObservation:
        if action.reset and action.is_input:
            raise ValueError("Cannot use reset=True with is_input=True")
        kind = None if action.is_input else looks_like_python_literal_argument(action.command)
        if kind is not None:
            head = action.command.lstrip()[:60]
            hint = _LITERAL_ARG_HINT_TEMPLATE.format(literal_kind=kind, head=head)
            return _refused(action, hint)
        try:
            note = self._reset() if action.reset else ""
            if action.reset and not action.command.strip():
                return TerminalObservation(content=contents(note), command="", exit_code=0)
            registry = None if conversation is None else conversation.state.secret_registry
            self._export_secrets(action, registry)
        except OhJupyterError as error:
            return _refused(action, str(error))
        return _without_secrets(self._run(action, note), registry)

    def _reset(self) -> str:
        """Interrupt what runs, or replace a shell that does not end it; explain which."""
        interrupt = events.CmdRunAction("C-c", is_input=True)
        interrupt.set_hard_timeout(_INTERRUPT_SECONDS)
        found = self.runtime.execute(interrupt)
        metadata = getattr(found, "metadata", None)
        is_idle = found.content == _NOTHING_RUNS
        if is_idle or (metadata is not None and metadata.exit_code != -1):
            return _INTERRUPTED
        self.runtime.connection.end_shell()
        self._export_env()
        return _REPLACED

    def _export_env(self) -> None:
        if self._env:
            self.runtime.connection.export(self._env)

    def _export_secrets(self, action: TerminalAction, registry: Any) -> None:
        """Set those secrets of the conversation as variables that a command names."""
        if registry is None or action.is_input or not action.command.strip():
            return
        if secrets := registry.get_secrets_as_env_vars(action.command):
            self.runtime.connection.export(secrets)

    def _run(self, action: TerminalAction, note: str) -> TerminalObservation:
        ours = events.CmdRunAction(action.command, is_input=action.is_input)
        if action.timeout is not None:
            ours.set_hard_timeout(action.timeout)
        found = self.runtime.execute(ours)
        metadata = getattr(found, "metadata", events.CmdOutputMetadata())
        suffix = _COMPLETED.sub("", metadata.suffix)  # the SDK says that itself
        suffix = suffix.replace(RUNNING_HINT, TIMEOUT_MESSAGE_TEMPLATE)
        metadata = replace(metadata, suffix=suffix)
        return TerminalObservation(
            content=contents(note + found.content),
            is_error=failed(found),
            command=action.command,
            exit_code=metadata.exit_code,
            timeout=metadata.exit_code == -1 and not failed(found),
            metadata=CmdOutputMetadata(**asdict(metadata)),
        )


def _refused(action: TerminalAction, reason: str) -> TerminalObservation:
    return TerminalObservation(
        content=contents(reason), is_error=True, command=action.command, exit_code=None
    )


def _without_secrets(observation: TerminalObservation, registry: Any) -> TerminalObservation:
    if registry is None:
        return observation
    text, prefix = map(
        registry.mask_secrets_in_output, (observation.text, observation.metadata.prefix)
    )
    return observation.model_copy(
        update={
            "content": contents(text),
            "metadata": observation.metadata.model_copy(update={"prefix": prefix}),
        }
    )


class KernelTerminalTool(TerminalTool):
    """``terminal`` on the shell that the person and the agent share."""

    name = TerminalTool.name

    @classmethod
    def create(
        cls,
        conv_state: ConversationState,
        *,
        env: Mapping[str, str] | None = None,
        **params: Any,
    ) -> Sequence[TerminalTool]:
        """Make the tool; other parameters of the SDK's own terminals mean nothing here.

        Args:
            conv_state: The state of the conversation.
            env: Variables to set in the shell, for all who use it.
            params: Ignored.

        Raises:
            AgentError: Variables cannot be set, since the kernel is behind a Jupyter server.
        """
        executor = _TerminalExecutor(normalize_terminal_env(env))
        tools: Sequence[TerminalTool] = super().create(conv_state, executor=executor)
        return tools

    def declared_resources(self, action: Action) -> DeclaredResources:
        """There is one shell, so one command at a time."""
        return DeclaredResources(keys=("terminal:session",), declared=True)


class _FileEditorExecutor(RuntimeExecutor[FileEditorAction, FileEditorObservation]):
    def __call__(self, action: FileEditorAction, conversation: Any = None) -> FileEditorObservation:
        if action.command == "view":
            found = self.runtime.execute(
                events.FileReadAction(
                    action.path, impl_source="oh_aci", view_range=action.view_range
                )
            )
        else:
            found = self.runtime.execute(
                events.FileEditAction(
                    action.path,
                    command=action.command,
                    file_text=action.file_text,
                    old_str=action.old_str,
                    new_str=action.new_str,
                    insert_line=action.insert_line,
                )
            )
        text = found.content.removeprefix("ERROR:\n")
        image = text.startswith("data:image/")
        return FileEditorObservation(
            content=contents(action.path, [text]) if image else contents(text),
            is_error=failed(found),
            command=action.command,
            path=action.path,
            prev_exist=action.command != "create",
            old_content=getattr(found, "old_content", None),
            new_content=getattr(found, "new_content", None),
        )


class KernelFileEditorTool(FileEditorTool):
    """``file_editor`` on the runtime's editor, whose edits the person can undo."""

    name = FileEditorTool.name

    @classmethod
    def create(cls, conv_state: ConversationState) -> Sequence[FileEditorTool]:
        """Make the tool."""
        return [tool.set_executor(_FileEditorExecutor()) for tool in super().create(conv_state)]


class IPythonAction(Action):
    """A cell to run."""

    code: str = Field(description="Python code; IPython's magics work, too.")
    timeout: float | None = Field(
        default=None, gt=0, description="Seconds after which it is interrupted. Default: no limit."
    )


class IPythonObservation(Observation):
    """What a cell printed, returned and drew."""


class _IPythonExecutor(RuntimeExecutor[IPythonAction, IPythonObservation]):
    def __call__(self, action: IPythonAction, conversation: Any = None) -> IPythonObservation:
        return IPythonObservation(**_run_cell(self.runtime, action.code, action.timeout))


def _run_cell(runtime: Interruptible, code: str, timeout: float | None) -> dict[str, Any]:
    ours = events.IPythonRunCellAction(code)
    ours.timeout = timeout
    found = runtime.execute(ours)
    images = getattr(found, "image_urls", None)
    return {"content": contents(found.content, images), "is_error": failed(found)}


class IPythonTool(ToolDefinition):
    """``ipython``: cells in the notebook's kernel, on the person's variables."""

    name = "ipython"
    catalog_description: ClassVar[str] = "Run cells on the variables of the open notebook."

    @classmethod
    def create(cls, conv_state: ConversationState) -> Sequence[IPythonTool]:
        """Make the tool."""
        return [
            cls(
                description="Run a cell in the running kernel of the person's notebook, on the "
                "variables that are there, and see its output, errors and plots. What it defines "
                "stays for the person and for later cells. Use it instead of starting Python in "
                "the terminal.",
                action_type=IPythonAction,
                observation_type=IPythonObservation,
                annotations=ToolAnnotations(title="ipython"),
                executor=_IPythonExecutor(),
            )
        ]


class NotebookAction(Action):
    """Something to be done with the cells of a notebook file."""

    command: Literal["view", "insert", "replace", "delete", "move", "run"] = Field(
        description="view shows all cells; insert adds one after `cell`, at the beginning without "
        "it; replace, delete and move change one; run runs one in the kernel."
    )
    path: str = Field(description="Absolute path of the .ipynb file.")
    cell: int | str | None = Field(
        default=None, description="The cell: its position, counted from 0, or its id."
    )
    source: str | None = Field(default=None, description="Text of the cell, to insert or replace.")
    cell_type: Literal["code", "markdown", "raw"] | None = Field(
        default=None, description="Type of the cell. Default when inserting: code."
    )
    to: int | None = Field(default=None, description="For move: its position afterwards.")


class NotebookObservation(Observation):
    """The cells of a notebook, what was changed, or what a cell put out."""


class _NotebookExecutor(RuntimeExecutor[NotebookAction, NotebookObservation]):
    def __call__(self, action: NotebookAction, conversation: Any = None) -> NotebookObservation:
        if action.command == "run":
            return self._run(action)
        if action.command == "view":
            ours: events.Action = events.FileReadAction(action.path, impl_source="oh_aci")
        else:
            ours = events.FileEditAction(
                action.path,
                command="notebook_edit",
                edit_mode=action.command,
                cell=action.cell,
                new_str=action.source,
                cell_type=action.cell_type,
                to=action.to,
            )
        found = self.runtime.execute(ours)
        text = found.content.removeprefix("ERROR:\n")
        return NotebookObservation(content=contents(text), is_error=failed(found))

    def _run(self, action: NotebookAction) -> NotebookObservation:
        read = self.runtime.execute(events.FileReadAction(action.path))
        if failed(read):
            return NotebookObservation(content=contents(read.content), is_error=True)
        cells = _cells(read.content)
        chosen = [
            cell for index, cell in enumerate(cells) if action.cell in (index, cell.get("id"))
        ]
        if not chosen or chosen[0].get("cell_type") != "code":
            problem = f"{action.path} has no code cell {action.cell!r}; it has {len(cells)} cells"
            return NotebookObservation(content=contents(problem), is_error=True)
        source = chosen[0].get("source", "")
        code = source if isinstance(source, str) else "".join(source)
        return NotebookObservation(**_run_cell(self.runtime, code, None))


def _cells(text: str) -> list[dict[str, Any]]:
    """The cells in the text of a notebook file; none if it is none."""
    try:
        found = json.loads(text)["cells"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return [cell for cell in found if isinstance(cell, dict)] if isinstance(found, list) else []


class NotebookTool(ToolDefinition):
    """``notebook``: the cells of a notebook file, edited with undo, run in the kernel."""

    name = "notebook"
    catalog_description: ClassVar[str] = "Read, edit and run cells of a notebook."

    @classmethod
    def create(cls, conv_state: ConversationState) -> Sequence[NotebookTool]:
        """Make the tool."""
        return [
            cls(
                description="Read, insert, replace, delete and move cells of a Jupyter notebook "
                "without touching its JSON, and run a cell in the running kernel. Every change "
                "can be undone by file_editor's undo_edit.",
                action_type=NotebookAction,
                observation_type=NotebookObservation,
                annotations=ToolAnnotations(title="notebook"),
                executor=_NotebookExecutor(),
            )
        ]


register(KernelTerminalTool, KernelFileEditorTool, IPythonTool, NotebookTool)
