"""The agents of one runtime: which are at work, and which one a prompt is for."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from oh_jupyter.agents.registry import AgentCommand, find_agent, known_agents
from oh_jupyter.agents.tool_server import ToolServer, list_tools
from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.errors import AgentError, StorageError

if TYPE_CHECKING:
    from oh_jupyter.agents.session import AgentSession
    from oh_jupyter.events import EventSource
    from oh_jupyter.runtime import ActionExecutor

MAX_TURNS = 50

NO_SERVER = (
    "No Jupyter server has this kernel, so the agent has none of the notebook's tools: it sees "
    "files and commands only. Open the notebook in JupyterLab to let it work on variables"
)


class GuestAgents:
    """The agents at work in a runtime. Its coroutines run on the runtime's loop."""

    def __init__(
        self,
        executor: ActionExecutor,
        find_tools: Callable[[], ToolServer | None] = lambda: None,
        on_turn: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> None:
        """Begin with none; ``turns`` will have the last prompts to all of them, the oldest first.

        Args:
            executor: What they work with.
            find_tools: Finds the address of our MCP server for this kernel; it may block.
            on_turn: Called on the loop when a turn, of whoever asked, has something new.
        """
        self.turns: deque[AgentTurn] = deque(maxlen=MAX_TURNS)
        self._on_turn = on_turn
        self.current: str | None = None
        self._executor = executor
        self._find_tools = find_tools
        self._sessions: dict[str, AgentSession] = {}
        self._starting = asyncio.Lock()

    def known(self) -> dict[str, AgentCommand]:
        """The agents that can be asked for, by name.

        Raises:
            AgentError: One of the person's own, or of another package, cannot be used.
        """
        return known_agents(self._executor.settings.agents)

    @property
    def at_work(self) -> dict[str, AgentSession]:
        """The sessions whose agent is there, by its name."""
        return {name: held for name, held in self._sessions.items() if not held.problem}

    def use(self, name: str) -> None:
        """Make an agent the one that prompts go to.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        self.current = find_agent(name, self._executor.settings.agents).name

    async def prompt(
        self,
        text: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool = False,
        context: Callable[[], str] = lambda: "",
        source: EventSource = "user",
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> AgentTurn:
        """Ask an agent and wait until its turn is over; cancelling this cancels the turn.

        Args:
            text: The prompt.
            agent: Its name; None for the one that was asked last.
            new: Begin a new conversation.
            resume: Go on with its last conversation here, which an earlier kernel may have had.
            context: What an agent is told before its first prompt.
            source: Who asks.
            on_change: Called on the loop when the turn has something new.

        Returns:
            The turn.

        Raises:
            AgentError: It does not start or answer, or is at work on another prompt.
            AgentNotFoundError: There is no such agent, or it is not installed.
        """
        name = agent or self.current
        if name is None:
            known = ", ".join(self.known())
            raise AgentError(f'Say which agent: %oh_agent NAME "…". Agents: {known}')
        command = find_agent(name, self._executor.settings.agents)
        if not text.strip():
            raise AgentError(f'Say what {name} is to do: %oh_agent {name} "…"')
        notices: tuple[str, ...] = ()
        async with self._starting:
            session = self._sessions.get(name)
            if session is not None and (new or session.problem):
                if session.is_busy:
                    raise AgentError(f"{name} is at work on another prompt")
                await self._end(name)
                if session.problem and not (new or resume):
                    notices = (f"{session.problem} A new conversation began.",)
                session = None
            if session is None:
                session, remarks = await self._start(command, resume)
                notices += remarks
            self.current = name
        told = context() if session.turns == 0 and not resume else ""
        turn = AgentTurn(name, text, notices=list(notices))

        def begin() -> None:
            self.turns.append(turn)
            self._on_turn(turn)

        def change(turn: AgentTurn) -> None:
            on_change(turn)
            self._on_turn(turn)

        try:
            return await session.prompt(
                turn, context=told, source=source, on_begin=begin, on_change=change
            )
        finally:
            if turn.began:
                self._on_turn(turn)

    async def _start(
        self, command: AgentCommand, resume: bool
    ) -> tuple[AgentSession, tuple[str, ...]]:
        try:
            from oh_jupyter.agents.session import AgentSession
        except ModuleNotFoundError as error:
            if error.name not in ("acp", "pydantic"):
                raise
            raise AgentError(
                "Agents need the package agent-client-protocol. Install it with: "
                'pip install "oh_jupyter[agents]"'
            ) from None
        command.arguments()  # whether it is there, before anything is looked for
        tools = await self._executor.in_thread(self._find_tools)
        if tools is None and command.needs_tools:
            raise AgentError(
                f"{command.name} works by the tools of the notebook's kernel, and no Jupyter "
                "server that runs here has this kernel. Open the notebook in JupyterLab, with "
                "oh_jupyter installed there, too"
            )
        session_id = await self._saved_session(command.name) if resume else None
        if resume and session_id is None:
            raise AgentError(f"There is no earlier conversation with {command.name} here")
        if tools is not None:
            self._executor.events.mask([tools.token] if len(tools.token) >= 8 else [])
            await self._executor.in_thread(list_tools, tools)
        session = AgentSession(self._executor, command)
        await session.start(tools, session_id)
        self._sessions[command.name] = session
        await self._save_session(command.name, session.session_id)
        return session, (() if tools is not None else (NO_SERVER,))

    def interrupt(self, name: str) -> None:
        """End the turn of an agent, which then stays for the next prompt.

        Args:
            name: Which one.
        """
        if name in self._sessions:
            self._sessions[name].interrupt()

    async def stop(self, name: str | None = None) -> list[str]:
        """End an agent, or all of them.

        Args:
            name: Which one; None for all.

        Returns:
            The names of those that were ended.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        if name is not None and name not in self._sessions:
            find_agent(name, self._executor.settings.agents)
        names = [name] if name is not None else list(self._sessions)
        ended = [name for name in names if name in self._sessions]
        for one in ended:
            await self._end(one)
        return ended

    async def _end(self, name: str) -> None:
        session = self._sessions.pop(name)
        await session.close()

    async def undo(self, turn: AgentTurn) -> list[str]:
        """Take back all edits that a turn made in the runtime's files.

        Args:
            turn: The turn.

        Returns:
            What was said about each file that was taken back.

        Raises:
            EditorError: An edit cannot be taken back, since others changed the same place.
            AgentError: It is no turn.
        """
        if not isinstance(turn, AgentTurn):
            raise AgentError(
                f"undo_turn takes a turn, such as turn = oh.agent(…) returns, not {turn!r:.100}"
            )

        def take_back() -> list[str]:
            editor = self._executor.editor
            for path, count in list(turn.changed_files.items()):
                for _ in range(count):
                    editor(command="undo_edit", path=path)
                del turn.changed_files[path]
                taken.append(path)
            return taken

        taken: list[str] = []
        return await self._executor.in_thread(take_back)

    # Conversations are remembered by workspace, for a kernel that comes later.

    @property
    def _saved_path(self) -> str:
        digest = hashlib.sha256(self._executor.workspace_dir.encode()).hexdigest()[:16]
        return f"agents/{digest}.json"

    async def _saved(self) -> dict[str, Any]:
        try:
            found = json.loads(
                await self._executor.in_thread(self._executor.file_store.read, self._saved_path)
            )
        except (StorageError, FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    async def _saved_session(self, name: str) -> str | None:
        found = (await self._saved()).get(name)
        return found if isinstance(found, str) else None

    async def _save_session(self, name: str, session_id: str) -> None:
        contents = json.dumps({**await self._saved(), name: session_id})
        with suppress(StorageError):  # the conversation goes on, it only cannot be found again
            await self._executor.in_thread(
                self._executor.file_store.write, self._saved_path, contents
            )
