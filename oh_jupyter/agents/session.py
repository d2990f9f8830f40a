"""A conversation with one agent: its process, the connection, and its turns."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import acp
from acp.schema import (
    AgentCapabilities,
    BooleanConfigOptionCapabilities,
    ClientCapabilities,
    ClientSessionCapabilities,
    DeleteSessionRequest,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    FileSystemCapabilities,
    Implementation,
    ListSessionsResponse,
    McpServerStdio,
    PromptResponse,
    SessionConfigOptionsCapabilities,
    SessionInfo,
)
from pydantic import ValidationError

from oh_jupyter._version import __version__
from oh_jupyter.agents.acp_client import AcpClient, directories
from oh_jupyter.agents.attachments import Attachment
from oh_jupyter.agents.children import END_GRACE_SECONDS, end_child, start_child
from oh_jupyter.agents.commands import TOOL_SERVER, AgentCommand
from oh_jupyter.agents.conversation import Conversation
from oh_jupyter.agents.failures import advice, failure_message, trouble, version_message
from oh_jupyter.agents.options import AgentOption
from oh_jupyter.agents.tool_socket import GuestTools, ToolSocket
from oh_jupyter.agents.transport import ChildTransport, connect
from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.config import environment_without_secrets
from oh_jupyter.errors import AgentError
from oh_jupyter.events import EventSource, MessageAction
from oh_jupyter.events.actor import Actor
from oh_jupyter.process import PIPE, Child
from oh_jupyter.runtime.session_changes import turn_changes

if TYPE_CHECKING:
    from oh_jupyter.runtime import ActionExecutor

logger = logging.getLogger(__name__)

CANCEL_TIMEOUT_SECONDS = 5.0
"""Time for an agent to end a cancelled turn before it is killed."""

SILENCE_SECONDS = 10.0
"""Silence of an agent after which the turn reports it."""

SILENT = (
    "{name} has been silent for {seconds} s: it may be waiting for its model, or retrying after "
    "an error (key, quota, network). An interrupt ends the turn."
)
MAX_STDERR_CHARS = 600

_SESSION_CAPABILITIES = ClientSessionCapabilities(
    config_options=SessionConfigOptionsCapabilities(boolean=BooleanConfigOptionCapabilities())
)

_ELICITATION = ElicitationCapabilities(
    form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities()
)

MAX_LISTED_SESSIONS = 200

T = TypeVar("T")


class AgentSession:
    """One running agent, on the runtime's loop; ``problem`` says why it has ended."""

    def __init__(
        self,
        executor: ActionExecutor,
        command: AgentCommand,
        offer: Callable[[str], GuestTools] | None = None,
    ) -> None:
        """Prepare; ``offer`` makes the tools of a guest, by the name of its conversation."""
        self.command = command
        self.turns = 0
        self.problem = ""
        self._executor = executor
        self._guest = f"{command.name}-{secrets.token_hex(4)}"
        environment = environment_without_secrets()
        self._client = AcpClient(executor, environment, self._guest)
        self._environment = environment
        self._busy = asyncio.Lock()
        self._can_list = self._can_delete = self._can_embed = False
        self.tools: ToolSocket | None = None
        if offer is not None:
            tools = offer(self._guest)
            self._client.save_documents = tools.save_documents
            self.tools = ToolSocket(tools, executor.in_thread)
        self._cancelling: asyncio.Task[None] | None = None
        self._request: asyncio.Task[PromptResponse] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._child: Child
        self._transport: ChildTransport
        self._connection: acp.ClientSideConnection
        self._conversation: Conversation

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._busy.locked()

    @property
    def resumable_id(self) -> str:
        """The agent's id of the session that a later kernel can resume."""
        return self._conversation.resumable_id

    @property
    def pid(self) -> int:
        """Process id of the agent."""
        return self._child.pid

    async def start(self, resume: str | None = None) -> None:
        """Start the agent, and start or resume a conversation; raise AgentError on failure."""
        argv = self.command.arguments()
        if self.tools is not None:
            await self.tools.open()
            if self.command.configure_tools is not None:
                argv = (*argv, *self.command.configure_tools(self.tools.command))
        timeout_seconds = self._executor.settings.agent_start_timeout
        self._child = await start_child(
            self._executor.in_thread,
            argv,
            cwd=self._executor.workspace_dir,
            env=self._environment,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        if self.tools is not None:
            self.tools.agent_pid = self._child.pid
        self._transport = ChildTransport(self._child)
        self._transport.on_stderr = self._report_trouble
        self._connection = connect(self._client, self._transport)
        self._conversation = Conversation(
            self.command.name,
            self._connection,
            self._ask,
            lambda: self._executor.settings.agent_start_timeout,
        )
        self._client.on_options = self._on_options
        self._watcher = asyncio.create_task(self._watch())
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._open(resume)
        except TimeoutError:
            stderr = self._stderr()
            await self.close()
            raise AgentError(
                f"{self.command.name} did not start a session within {timeout_seconds:g} s.{stderr}"
                " The setting agent_start_timeout allows more"
            ) from None
        except BaseException:
            await self.close()
            raise

    async def _open(self, resume: str | None) -> None:
        info = await self._ask(
            self._connection.initialize(
                protocol_version=acp.PROTOCOL_VERSION,
                client_capabilities=ClientCapabilities(
                    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
                    terminal=True,
                    session=_SESSION_CAPABILITIES,
                    elicitation=_ELICITATION,
                ),
                client_info=Implementation(name="oh_jupyter", version=__version__),
            )
        )
        if info.protocol_version != acp.PROTOCOL_VERSION:
            raise AgentError(version_message(self.command.name, info.protocol_version))
        capabilities = info.agent_capabilities or AgentCapabilities()
        offered = capabilities.session_capabilities
        self._can_list = offered is not None and offered.list is not None
        self._can_delete = offered is not None and offered.delete is not None
        accepted = capabilities.prompt_capabilities
        self._can_embed = accepted is not None and bool(accepted.embedded_context)
        parameters = {
            "cwd": self._executor.workspace_dir,
            "mcp_servers": self._mcp_servers,
            **self.command.session_options,
        }
        if offered is not None and offered.additional_directories is not None:
            parameters["additional_directories"] = directories(self._executor.settings)
        await self._conversation.open(capabilities, parameters, resume)

    @property
    def options(self) -> tuple[AgentOption, ...]:
        """The options of its session, such as mode and model."""
        return self._conversation.options.all

    def option(self, name: str) -> AgentOption | None:
        """Return the option with an id or of a category, such as ``mode``."""
        return self._conversation.options.find(name)

    async def choose(self, options: Mapping[str, str]) -> None:
        """Set options for the next prompts; raise AgentError for unknown ones and while busy."""
        if not options:
            return
        if self.is_busy:
            raise AgentError(f"{self.command.name} is busy with another prompt")
        async with self._busy:
            await self._conversation.wait_for_fork()
            await self._conversation.options.choose(self._conversation.session_id, options)

    def _on_options(self, session_id: str, update: Any) -> None:
        if session_id == self._conversation.session_id:
            self._conversation.options.update(update)

    async def list_sessions(self) -> list[SessionInfo]:
        """Return the conversations of this workspace that the agent knows, the latest first."""
        if not self._can_list:
            raise AgentError(f"{self.command.name} does not list its conversations")
        sessions: list[SessionInfo] = []
        cursor: str | None = None
        while len(sessions) < MAX_LISTED_SESSIONS:
            page: ListSessionsResponse = await self._ask(
                self._connection.list_sessions(cwd=self._executor.workspace_dir, cursor=cursor)
            )
            sessions += page.sessions
            cursor = page.next_cursor
            if not cursor:
                break
        return sorted(sessions, key=lambda each: each.updated_at or "", reverse=True)

    async def delete_session(self, session_id: str) -> None:
        """Delete an earlier conversation; raise AgentError for the current one, or if it fails."""
        name = self.command.name
        if not self._can_delete:
            raise AgentError(f"{name} does not delete conversations")
        if session_id in (self._conversation.session_id, self._conversation.resumable_id):
            raise AgentError(
                f"{session_id} is the conversation that {name} is having. Stop {name}, or start a "
                "new conversation first"
            )
        request = DeleteSessionRequest(session_id=session_id)
        # The library has the request's type, but no method for it.
        sending = self._connection._conn.send_request(
            acp.AGENT_METHODS["session_delete"],
            request.model_dump(by_alias=True, exclude_none=True),
        )
        await self._ask(sending)

    async def forget_undone(self) -> bool:
        """Continue without the undone turns; return whether the agent then remembers nothing."""
        if self.is_busy or self.problem:
            return False
        async with self._busy:
            return await self._conversation.forget_undone()

    @property
    def _mcp_servers(self) -> list[McpServerStdio]:
        """Our MCP server, unless the agent has it by its command line."""
        if self.tools is None or self.command.configure_tools is not None:
            return []
        program, *arguments = self.tools.command
        return [McpServerStdio(name=TOOL_SERVER, command=program, args=arguments, env=[])]

    async def _ask(self, request: Coroutine[Any, Any, T]) -> T:
        """Return the agent's response; raise AgentError for an error, a bad or a missing one."""
        try:
            return await request
        except acp.RequestError as error:
            raise AgentError(failure_message(self.command.name, error)) from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise AgentError(
                f"{self.command.name} violates the Agent Client Protocol: {where}: {first['msg']}"
            ) from None
        except ConnectionError:
            raise AgentError(await self.wait_ended()) from None

    async def wait_ended(self) -> str:
        """Wait until the agent has ended; return the reason."""
        if self._watcher is not None:
            await asyncio.wait({self._watcher})
        return self.problem

    async def _watch(self) -> None:
        """Wait for the agent's end, or for a stop, and clean up after it."""
        try:
            await self._transport.ended.wait()
            status = None
            if not self._transport.problem:
                await self._executor.in_thread(self._child.terminate, END_GRACE_SECONDS)
                await self._executor.in_thread(self._transport.wait_for_stderr)
                status = self._child.poll()
            reason = self._transport.problem or f"exit status {status}"
            self.problem = f"{self.command.name} has ended: {reason}.{self._stderr()}"
        finally:
            self._client.cancel()
            end_child(self._child)
            self.problem = self.problem or f"{self.command.name} was stopped"

    def _stderr(self) -> str:
        text = self._transport.stderr_tail[-MAX_STDERR_CHARS:].strip()
        return f" Its last output: {text}{advice(text)}" if text else ""

    def _report_trouble(self, text: str) -> None:
        """Show failures and retries from the agent's standard error during a turn."""
        if status := trouble(text):
            self._set_status(f"{self.command.name}: {status}{advice(status)}")

    def _set_status(self, status: str) -> None:
        if (turn := self._client.turn) is not None:
            turn.status = status
            self._client.on_change(turn)

    async def prompt(
        self,
        turn: AgentTurn,
        *,
        context: str = "",
        attachments: Sequence[Attachment] = (),
        source: EventSource = "user",
        on_begin: Callable[[], None] = lambda: None,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> AgentTurn:
        """Run a turn and record its result; ``context`` precedes the prompt outside of the log."""
        if self._cancelling is not None:
            await asyncio.wait({self._cancelling})
        if self._busy.locked():
            raise AgentError(
                f"{self.command.name} is busy with another prompt. Wait for it, or end it with "
                f"%oh_agent stop {self.command.name}"
            )
        if self.problem:
            raise AgentError(self.problem)
        async with self._busy:
            self.turns += 1
            text, turn.began = turn.prompt, time.time()
            self._executor.events.add_event(MessageAction(text), source)
            turn.first_event = self._executor.events.latest_id
            on_begin()
            earlier = self._conversation.begin(turn)
            actor, process = Actor(guest=self._guest), self._child.guardian_pid
            turn.checkpoint = await self._executor.turns.begin(text, actor.name, actor, process)
            self._client.begin(turn, on_change)
            self._executor.interrupted_guests.discard(self._guest)
            try:
                words = "\n\n".join(filter(None, (context, earlier, text)))
                blocks = [each.block(can_embed=self._can_embed) for each in attachments]
                await self._take_turn(turn, [acp.text_block(words), *blocks])
            finally:
                self._client.end()
                self._record(turn)
                turn.checkpoint = self._executor.turns.latest(turn.checkpoint)
                ended = self._executor.turns.end(turn.checkpoint)
                if not self.problem:
                    self._conversation.keep_for_return(self._cancelling)
            if ended is not None:
                await asyncio.wait({ended})
            changes = await self._executor.in_thread(
                turn_changes,
                self._executor,
                turn.began,
                turn.first_event,
                has_checkpoint=turn.checkpoint is not None,
            )
            turn.changed_files, turn.changed_by_commands, turn.diff, turn.runs_when = changes
            on_change(turn)
            return turn

    async def _take_turn(self, turn: AgentTurn, blocks: list[Any]) -> None:
        request = asyncio.create_task(
            self._ask(
                self._connection.prompt(session_id=self._conversation.session_id, prompt=blocks)
            )
        )
        self._request = request
        try:
            await self._wait_for(request)
            response = request.result()
        except asyncio.CancelledError:
            turn.stop_reason = "cancelled"
            if request.cancelled():  # the agent ignored an interrupt
                raise AgentError(self.problem) from None
            self.interrupt()
            raise
        except AgentError:
            turn.stop_reason, turn.status = "failed", ""  # the error explains it
            raise
        finally:
            self._request = None
        turn.stop_reason = response.stop_reason
        if response.usage is not None:
            usage = response.usage.model_dump(exclude={"field_meta"}, exclude_none=True)
            turn.usage = {name: int(count) for name, count in usage.items()}

    async def _wait_for(self, request: asyncio.Task[PromptResponse]) -> None:
        """Wait for the response, and report a silent agent, which may be retrying."""
        began = time.monotonic()
        while not (await asyncio.wait({request}, timeout=SILENCE_SECONDS))[0]:
            seconds = time.monotonic() - max(began, self._client.last_update)
            turn = self._client.turn
            if turn is None or turn.status or any(turn.unfinished_calls):
                continue
            if seconds >= SILENCE_SECONDS:
                self._set_status(SILENT.format(name=self.command.name, seconds=round(seconds)))

    def interrupt(self) -> None:
        """End the running turn, whose prompt then returns its partial result."""
        if self._request is not None and self._cancelling is None:
            self._cancelling = asyncio.create_task(self._cancel(self._request))

    async def _cancel(self, request: asyncio.Task[PromptResponse]) -> None:
        """Cancel a turn on both sides, and end the agent if it ignores that."""
        try:
            self._client.cancel()
            # Codex does not forward a cancel to its MCP servers, and a call may be in transit.
            self._executor.interrupt_guest(self._guest)
            if not self.problem:
                await self._connection.cancel(session_id=self._conversation.session_id)
            done, _ = await asyncio.wait({request}, timeout=CANCEL_TIMEOUT_SECONDS)
            self._client.cancel()  # Actions that started in between
            if not done:
                self.problem = (
                    f"{self.command.name} was ended: it did not end its turn within "
                    f"{CANCEL_TIMEOUT_SECONDS:g} s of the interrupt"
                )
                await self.close()
        except ConnectionError:
            pass
        finally:
            if not request.cancel() and not request.cancelled():
                request.exception()  # it has no waiter left
            self._cancelling = None

    def _record(self, turn: AgentTurn) -> None:
        if turn.text:
            message = MessageAction(turn.text)
            message.actor = Actor(guest=self._guest)
            self._executor.events.add_event(message, "agent")

    async def close(self) -> None:
        """End the agent and all of its processes."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait({self._watcher})
        self._conversation.close()
        await self._connection.close()
        await self._transport.close()
        if self.tools is not None:
            await self.tools.close()
        await self._executor.in_thread(self._child.terminate, END_GRACE_SECONDS)
