"""Our side of the Agent Client Protocol: the agent's requests to the runtime."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ConfigOptionUpdate,
    ContentToolCallContent,
    CreateElicitationResponse,
    CreateTerminalResponse,
    CurrentModeUpdate,
    ElicitationFormRequestMode,
    ElicitationFormSessionMode,
    ElicitationMode,
    EnvVariable,
    FileEditToolCallContent,
    ImageContentBlock,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

from oh_jupyter.agents.commands import TOOL_SERVER
from oh_jupyter.agents.permissions import (
    action_of,
    edited_paths,
    elicitation_response,
    form_of,
    is_our_tool,
    permission_response,
    title_of,
)
from oh_jupyter.agents.terminals import AgentTerminal, command_line
from oh_jupyter.agents.turn import (
    MAX_OUTPUT_CHARS,
    AgentTurn,
    FileDiff,
    Picture,
    PlanEntry,
    ToolCall,
)
from oh_jupyter.background import run_in_background
from oh_jupyter.events import (
    Action,
    CmdRunAction,
    ErrorObservation,
    EventSource,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    MCPAction,
    MCPObservation,
    NullObservation,
    Observation,
)
from oh_jupyter.events.actor import Actor

if TYPE_CHECKING:
    from oh_jupyter.config import Settings
    from oh_jupyter.runtime import ActionExecutor
    from oh_jupyter.runtime.confirmation import Decision

MAX_TERMINALS = 50

Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])


def _refuse(message: str) -> NoReturn:
    raise RequestError.invalid_params({"details": message})


def _answered(method: Handler) -> Handler:
    """Decorator that turns any error into a response to the agent."""

    @wraps(method)
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except RequestError:
            raise
        except Exception as error:
            raise RequestError.internal_error({"details": str(error)}) from error

    return wrapped  # type: ignore[return-value]


def directories(settings: Settings) -> list[str]:
    """Return the real paths of the further directories in which agents may work."""
    return [os.path.realpath(os.path.expanduser(path)) for path in settings.agent_directories]


_READ_ONLY_KINDS = ("read", "search", "think", "fetch")
"""Kinds of an agent's own tools that change no files."""


class AcpClient:
    """Client of one agent, on the runtime's loop; drops updates outside of a turn."""

    def __init__(self, executor: ActionExecutor, environment: dict[str, str], guest: str) -> None:
        """Take the name of the agent's conversation, which identifies its Actions."""
        self.turn: AgentTurn | None = None
        self.last_update = 0.0
        self.on_change: Callable[[AgentTurn], None] = lambda turn: None
        self.on_options: Callable[[str, Any], None] = lambda session_id, update: None
        self.save_documents: Callable[[], None] = lambda: None
        self._costs = ("", 0.0)
        self._executor = executor
        self._environment = environment
        self._guest = guest
        self._workspace = os.path.realpath(executor.workspace_dir)
        self._terminals: dict[str, AgentTerminal] = {}
        self._terminal_count = 0
        self._calls_of_terminals: dict[str, ToolCall] = {}
        self._acting: set[asyncio.Task[Observation]] = set()
        self._approved_paths: set[str] = set()
        self._approved_commands: set[str] = set()

    def begin(self, turn: AgentTurn, on_change: Callable[[AgentTurn], None]) -> None:
        """Start a new turn."""
        self.turn, self.on_change = turn, on_change
        self._approved_paths.clear()
        self._approved_commands.clear()

    def end(self) -> None:
        """End the turn: show its remaining output, and drop later updates."""
        for id in self._terminals:
            self._show_terminal(id)
        self.turn = None

    def cancel(self) -> None:
        """Cancel the agent's Actions, questions and commands."""
        for task in list(self._acting):
            task.cancel()
        for terminal in self._terminals.values():
            terminal.kill()

    async def _act(
        self,
        action: Action,
        *,
        approved: bool = False,
        execute: Callable[[], Awaitable[Observation]] | None = None,
        only_asks: bool = False,
    ) -> Observation:
        """Execute an Action of the agent; return an error if it was cancelled."""
        principal: EventSource = "user" if approved else "agent"
        action.actor = Actor(guest=self._guest)
        task = asyncio.create_task(
            self._executor.run_action(
                action, "agent", principal=principal, execute=execute, only_asks=only_asks
            )
        )
        self._acting.add(task)
        try:
            # Not the task itself: a cancelled Action still needs a response.
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._acting.discard(task)
        if task.cancelled():
            return ErrorObservation("The action was cancelled.", outcome="cancelled")
        return task.result()

    @_answered
    async def request_permission(
        self,
        session_id: str,
        tool_call: ToolCallUpdate,
        options: list[PermissionOption],
        **kwargs: Any,
    ) -> RequestPermissionResponse:
        """Ask the person if the policy requires it; our own tools ask themselves."""
        ours = is_our_tool(tool_call, TOOL_SERVER)
        call = None if self.turn is None else self.turn.call(tool_call.tool_call_id)
        if call is not None and call.title:
            # Codex' request has fewer details than its tool call.
            details = {"title": call.title, "kind": call.kind}
            arguments = call.arguments or tool_call.raw_input
            tool_call = tool_call.model_copy(update={**details, "raw_input": arguments})
        title = tool_call.title or title_of(tool_call)
        tool_call = tool_call.model_copy(update={"title": title})
        self._record_call(tool_call)
        if ours or is_our_tool(tool_call, TOOL_SERVER):
            return permission_response(options, approved=True)
        action = action_of(tool_call, title)

        async def approve() -> Observation:
            return NullObservation(f"The agent may execute it: {title}")

        observation = await self._act(action, execute=approve, only_asks=True)
        approved = isinstance(observation, NullObservation)
        if approved:
            self._approved_paths |= {os.path.realpath(path) for path in edited_paths(tool_call)}
            if isinstance(action, CmdRunAction):
                self._approved_commands.add(action.command)
        return permission_response(options, approved)

    @_answered
    async def create_elicitation(
        self, message: str, mode: ElicitationMode, **kwargs: Any
    ) -> CreateElicitationResponse:
        """Ask the person for values, or to open a page. The log has no values."""
        is_form = isinstance(mode, ElicitationFormSessionMode | ElicitationFormRequestMode)
        form = form_of(mode.requested_schema) if is_form else ()
        arguments = {"fields": [field.title for field in form]} if is_form else {"url": mode.url}
        action = MCPAction(f"question to the user: {message}", arguments)
        decision: Decision | None = None

        async def ask() -> Observation:
            nonlocal decision
            decision = await self._executor.confirmations.ask(action, form)
            if decision is None:
                return ErrorObservation(
                    "Nobody answered in time.", outcome="timed_out", reason_code="unanswered"
                )
            answer = "The user answered." if decision.approved else "The user did not answer."
            return MCPObservation(answer, name=action.name, arguments=arguments)

        await self._act(action, approved=True, execute=ask, only_asks=True)
        return elicitation_response(decision)

    def _inside(self, path: str) -> str:
        """Return the real path of a file in the workspace or a further directory, or refuse."""
        if "\0" in path or not os.path.isabs(path):
            _refuse(f"{path!r} is not an absolute path")
        real = os.path.realpath(path)
        folders = (self._workspace, *directories(self._executor.settings))
        if not any(Path(real).is_relative_to(folder) for folder in folders):
            _refuse(f"{path} is outside of the workspace {self._workspace}")
        return real

    @_answered
    async def read_text_file(
        self,
        session_id: str,
        path: str,
        line: int | None = None,
        limit: int | None = None,
        **kwargs: Any,
    ) -> ReadTextFileResponse:
        """Read a file of the workspace, or some of its lines, counted from 1."""
        target = self._inside(path)
        await self._executor.in_thread(self.save_documents)
        observation = await self._act(FileReadAction(target))
        content = _content(observation)
        if line is not None or limit is not None:
            lines = content.splitlines(keepends=True)
            first = max(0, (line or 1) - 1)
            content = "".join(lines[first : None if limit is None else first + limit])
        return ReadTextFileResponse(content=content)

    @_answered
    async def write_text_file(
        self, session_id: str, path: str, content: str, **kwargs: Any
    ) -> WriteTextFileResponse:
        """Write a file of the workspace as an edit that can be undone."""
        target = self._inside(path)
        await self._executor.in_thread(self.save_documents)
        action: Action
        if os.path.exists(target):
            action = FileWriteAction(target, content)
        else:
            action = FileEditAction(target, command="create", file_text=content)
        approved = target in self._approved_paths
        _content(await self._act(action, approved=approved))
        return WriteTextFileResponse()

    @_answered
    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        """Start a command in its own shell."""
        if sum(not terminal.ended.is_set() for terminal in self._terminals.values()) >= (
            MAX_TERMINALS
        ):
            _refuse(f"{MAX_TERMINALS} commands are running already")
        shown, argv = command_line(command, args or [])
        action = CmdRunAction(shown, is_static=True, cwd=cwd or self._workspace)
        variables = {variable.name: variable.value for variable in env or ()}
        terminal = AgentTerminal(
            action,
            argv,
            self._environment | variables,
            output_byte_limit,
            self._executor.in_thread,
            self._executor.box_of,
        )
        approved = shown in self._approved_commands
        running = asyncio.create_task(self._act(action, approved=approved, execute=terminal.run))
        waits: set[asyncio.Future[Any]] = {running, terminal.started}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not terminal.started.done():
            _content(running.result())
            _refuse(f"{shown} was not started")
        self._terminal_count += 1
        id = f"terminal-{self._terminal_count}"
        self._terminals[id] = terminal
        return CreateTerminalResponse(terminal_id=id)

    def _terminal(self, id: str) -> AgentTerminal:
        if id not in self._terminals:
            _refuse(f"There is no terminal {id!r}")
        return self._terminals[id]

    @_answered
    async def terminal_output(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> TerminalOutputResponse:
        """Return a command's output so far."""
        terminal = self._terminal(terminal_id)
        status = None
        if terminal.ended.is_set():
            status = TerminalExitStatus(exit_code=terminal.exit_code, signal=terminal.signal_name)
        return TerminalOutputResponse(
            output=terminal.output, truncated=terminal.truncated, exit_status=status
        )

    @_answered
    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        """Wait for the end of a command."""
        terminal = self._terminal(terminal_id)
        await terminal.ended.wait()
        return WaitForTerminalExitResponse(
            exit_code=terminal.exit_code, signal=terminal.signal_name
        )

    @_answered
    async def kill_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> KillTerminalResponse:
        """End a command and keep its output."""
        self._terminal(terminal_id).kill()
        return KillTerminalResponse()

    @_answered
    async def release_terminal(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> ReleaseTerminalResponse:
        """End a command and forget it."""
        terminal = self._terminal(terminal_id)
        terminal.kill()
        self._show_terminal(terminal_id)
        del self._terminals[terminal_id]
        return ReleaseTerminalResponse()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Record the agent's messages and steps."""
        if isinstance(update, ConfigOptionUpdate | CurrentModeUpdate):
            self.on_options(session_id, update)
            return
        turn = self.turn
        if turn is None:
            return
        turn.status, self.last_update = "", time.monotonic()
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                turn.add_text(text)
            case AgentThoughtChunk(content=TextContentBlock(text=text)):
                turn.add_thought(text)
            case ToolCallStart() | ToolCallProgress():
                self._record_call(update)
            case AgentPlanUpdate(entries=entries):
                turn.plan = [PlanEntry(entry.content, entry.status) for entry in entries]
            case UsageUpdate():
                self._record_usage(turn, session_id, update)
            case _:
                return
        self.on_change(turn)

    def _record_usage(self, turn: AgentTurn, session_id: str, update: UsageUpdate) -> None:
        """Record the use of the context, and the cost of the turn, of which agents report sums."""
        turn.context_tokens, turn.context_size = update.used, update.size
        if update.cost is None:
            return
        before = self._costs[1] if self._costs[0] == session_id else 0.0
        turn.cost = (turn.cost or 0.0) + update.cost.amount - before
        turn.currency = update.cost.currency
        self._costs = (session_id, update.cost.amount)

    def _record_call(self, update: Any) -> ToolCall | None:
        """Record the changes of a tool call in the turn."""
        call = None if self.turn is None else self.turn.call(update.tool_call_id)
        if call is None:
            return None
        call.title = update.title or call.title
        call.kind = update.kind or call.kind
        call.status = update.status or call.status
        turns = self._executor.turns
        if call.status in ("completed", "failed"):
            run_in_background(turns.end_work(call.id))
        elif call.kind not in _READ_ONLY_KINDS and not is_our_tool(update, TOOL_SERVER):
            run_in_background(turns.begin_work(call.id, call.title))
        if update.raw_input is not None:
            call.arguments = update.raw_input
        if update.content is not None:
            self._record_content(call, update.content)
        elif not call.output and isinstance(update.raw_output, str):
            call.output = update.raw_output[:MAX_OUTPUT_CHARS]
        return call

    def _record_content(self, call: ToolCall, content: list[Any]) -> None:
        texts: list[str] = []
        call.diffs, call.pictures = [], []
        for part in content:
            match part:
                case ContentToolCallContent(content=TextContentBlock(text=text)):
                    texts.append(text)
                case ContentToolCallContent(content=ImageContentBlock() as image):
                    call.pictures.append(Picture(image.data, image.mime_type))
                case FileEditToolCallContent():
                    call.diffs.append(FileDiff(part.path, part.old_text, part.new_text))
                case TerminalToolCallContent(terminal_id=id):
                    self._calls_of_terminals[id] = call
        call.output = "\n".join(texts)[:MAX_OUTPUT_CHARS]
        for id in self._terminals:
            self._show_terminal(id)

    def _show_terminal(self, id: str) -> None:
        """Copy a command's output to its tool call."""
        if id in self._calls_of_terminals:
            self._calls_of_terminals[id].output = self._terminals[id].output[-MAX_OUTPUT_CHARS:]


def _content(observation: Observation) -> str:
    """Return the content of an Observation; raise RequestError for a rejection or an error."""
    if observation.outcome != "done":
        _refuse(observation.failure)
    return observation.content
