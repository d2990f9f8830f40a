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
from oh_jupyter.control_messages import RUNNING_HINT
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.openhands.connection import Interruptible, connection
from oh_jupyter.text import plural

if TYPE_CHECKING:
    from openhands.sdk.conversation.state import ConversationState

ActionT = TypeVar("ActionT", bound=Action)
ObservationT = TypeVar("ObservationT", bound=Observation)


class RuntimeExecutor(ToolExecutor, Generic[ActionT, ObservationT]):
    """Base of the executors, which translate the SDK's Actions into the runtime's and back."""

    def __init__(self) -> None:
        self.runtime = Interruptible(connection())

    def interrupt(self) -> None:
        """Cancel the tool's running Actions."""
        self.runtime.interrupt()


def register(*tools: type[ToolDefinition]) -> None:
    """Register tools by name, in place of the SDK's own."""
    logger = logging.getLogger(register_tool.__module__)
    before, logger.disabled = logger.disabled, True
    try:
        for tool in tools:
            register_tool(tool.name, tool)
    finally:
        logger.disabled = before


def failed(observation: events.Observation) -> bool:
    """Return whether an Action was rejected, cancelled, or failed; not whether code raised."""
    ran = isinstance(observation, events.CmdOutputObservation | events.IPythonRunCellObservation)
    return observation.outcome != "done" and not ran


def contents(text: str, image_urls: Sequence[str] | None = None) -> list[Any]:
    """Return text and images of an Observation as the SDK's content."""
    texts: list[Any] = [TextContent(text=text)]
    return [*texts, ImageContent(image_urls=list(image_urls))] if image_urls else texts


_INTERRUPT_SECONDS = 5.0
"""Seconds that a command has to end by Ctrl-C before a reset replaces the shell."""

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
        """Interrupt the running command, or replace a shell that hangs; explain which."""
        interrupt = events.CmdRunAction("C-c", is_input=True)
        interrupt.set_hard_timeout(_INTERRUPT_SECONDS)
        observation = self.runtime.execute(interrupt)
        metadata = getattr(observation, "metadata", None)
        is_idle = observation.reason_code == "nothing_runs"
        if is_idle or (metadata is not None and metadata.exit_code != -1):
            return _INTERRUPTED
        self.runtime.connection.end_shell()
        self._export_env()
        return _REPLACED

    def _export_env(self) -> None:
        if self._env:
            self.runtime.connection.export(self._env)

    def _export_secrets(self, action: TerminalAction, registry: Any) -> None:
        """Export the conversation's secrets that a command names."""
        if registry is None or action.is_input or not action.command.strip():
            return
        if secrets := registry.get_secrets_as_env_vars(action.command):
            self.runtime.connection.export(secrets)

    def _run(self, action: TerminalAction, note: str) -> TerminalObservation:
        ours = events.CmdRunAction(action.command, is_input=action.is_input)
        if action.timeout is not None:
            ours.set_hard_timeout(action.timeout)
        observation = self.runtime.execute(ours)
        metadata = getattr(observation, "metadata", events.CmdOutputMetadata())
        suffix = _COMPLETED.sub("", metadata.suffix)  # the SDK adds it itself
        suffix = suffix.replace(RUNNING_HINT, TIMEOUT_MESSAGE_TEMPLATE)
        metadata = replace(metadata, suffix=suffix)
        return TerminalObservation(
            content=contents(note + observation.content),
            is_error=failed(observation),
            command=action.command,
            exit_code=metadata.exit_code,
            timeout=metadata.exit_code == -1 and not failed(observation),
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
        """Make the tool; other parameters of the SDK's own terminals are ignored.

        Args:
            conv_state: The state of the conversation.
            env: Variables to set in the shell, for all of its users.
            params: Ignored.

        Raises:
            AgentError: Variables cannot be set, since the kernel is behind a Jupyter server.
        """
        executor = _TerminalExecutor(normalize_terminal_env(env))
        tools: Sequence[TerminalTool] = super().create(conv_state, executor=executor)
        return tools

    def declared_resources(self, action: Action) -> DeclaredResources:
        """Declare the shell, which runs one command at a time."""
        return DeclaredResources(keys=("terminal:session",), declared=True)


class _FileEditorExecutor(RuntimeExecutor[FileEditorAction, FileEditorObservation]):
    def __call__(self, action: FileEditorAction, conversation: Any = None) -> FileEditorObservation:
        if action.command == "view":
            observation = self.runtime.execute(
                events.FileReadAction(
                    action.path, impl_source="oh_aci", view_range=action.view_range
                )
            )
        else:
            observation = self.runtime.execute(
                events.FileEditAction(
                    action.path,
                    command=action.command,
                    file_text=action.file_text,
                    old_str=action.old_str,
                    new_str=action.new_str,
                    insert_line=action.insert_line,
                )
            )
        text = observation.failure or observation.content
        image = text.startswith("data:image/")
        return FileEditorObservation(
            content=contents(action.path, [text]) if image else contents(text),
            is_error=failed(observation),
            command=action.command,
            path=action.path,
            prev_exist=action.command != "create",
            old_content=getattr(observation, "old_content", None),
            new_content=getattr(observation, "new_content", None),
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
    """Output of a cell: texts and pictures."""


class _IPythonExecutor(RuntimeExecutor[IPythonAction, IPythonObservation]):
    def __call__(self, action: IPythonAction, conversation: Any = None) -> IPythonObservation:
        return IPythonObservation(**_run_cell(self.runtime, action.code, action.timeout))


def _run_cell(runtime: Interruptible, code: str, timeout: float | None) -> dict[str, Any]:
    ours = events.IPythonRunCellAction(code)
    ours.timeout = timeout
    observation = runtime.execute(ours)
    images = getattr(observation, "image_urls", None)
    return {"content": contents(observation.content, images), "is_error": failed(observation)}


class IPythonTool(ToolDefinition):
    """``ipython``: runs cells in the notebook's kernel, on the person's variables."""

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
    """An operation on the cells of a notebook file."""

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
    """Cells of a notebook, a change, or the output of a cell."""


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
        observation = self.runtime.execute(ours)
        text = observation.failure or observation.content
        return NotebookObservation(content=contents(text), is_error=failed(observation))

    def _run(self, action: NotebookAction) -> NotebookObservation:
        read = self.runtime.execute(events.FileReadAction(action.path))
        if failed(read):
            return NotebookObservation(content=contents(read.content), is_error=True)
        cells = _cells(read.content)
        chosen = [
            cell for index, cell in enumerate(cells) if action.cell in (index, cell.get("id"))
        ]
        if not chosen or chosen[0].get("cell_type") != "code":
            count = plural(len(cells), "cell")
            error = f"{action.path} has no code cell {action.cell!r}; it has {count}"
            return NotebookObservation(content=contents(error), is_error=True)
        source = chosen[0].get("source", "")
        code = source if isinstance(source, str) else "".join(source)
        return NotebookObservation(**_run_cell(self.runtime, code, None))


def _cells(text: str) -> list[dict[str, Any]]:
    """Return the cells in the text of a notebook file; none for an invalid one."""
    try:
        cells = json.loads(text)["cells"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return []
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []


class NotebookTool(ToolDefinition):
    """``notebook``: edits the cells of a notebook file, with undo, and runs them in the kernel."""

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
