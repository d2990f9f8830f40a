"""The agents of one runtime, and which one gets a prompt."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from oh_jupyter.agents.attachments import Attachment
from oh_jupyter.agents.commands import AgentCommand, find_agent, known_agents
from oh_jupyter.agents.registry import cached_agents, fetch_agents
from oh_jupyter.agents.saved_sessions import save_session, saved_session
from oh_jupyter.agents.tool_socket import GuestTools
from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.background import run_in_background
from oh_jupyter.errors import AgentError, CheckpointError, LedgerError
from oh_jupyter.policy import check_allowed

if TYPE_CHECKING:
    from acp.schema import SessionInfo

    from oh_jupyter.agents.options import AgentOption
    from oh_jupyter.agents.session import AgentSession
    from oh_jupyter.events import EventSource
    from oh_jupyter.runtime import ActionExecutor

MAX_TURNS = 50

NO_TOOLS = (
    "{name} did not start the program of the notebook's tools, so it had none. {name}'s log may "
    "say why"
)


class GuestAgents:
    """The running agents of a runtime. Its coroutines run on the runtime's loop."""

    def __init__(
        self,
        executor: ActionExecutor,
        offer: Callable[[str], GuestTools] | None = None,
        on_turn: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> None:
        """Start with no agents; ``turns`` will hold the latest turns, oldest first.

        Args:
            executor: The runtime's executor.
            offer: Makes the tools of a guest, by the name of its conversation; None for no tools.
            on_turn: Called on the loop when any turn changes.
        """
        self.turns: deque[AgentTurn] = deque(maxlen=MAX_TURNS)
        self._on_turn = on_turn
        self.current: str | None = None
        self._executor = executor
        self._offer = offer
        self._sessions: dict[str, AgentSession] = {}
        self._starting = asyncio.Lock()
        executor.turns.on_rewound = self._mark_undone_later

    def known(self) -> dict[str, AgentCommand]:
        """Return the available agents by name, with those of the registry that are installed.

        Raises:
            AgentError: An agent of the person or of another package is invalid.
        """
        settings = self._executor.settings
        offered = cached_agents() if settings.agent_registry else []
        return known_agents(settings.agents, offered)

    def _find(self, name: str) -> AgentCommand:
        agent = find_agent(name, self.known())
        check_allowed(self.policy, "agents", agent.name)
        return agent

    @property
    def policy(self) -> Mapping[str, str]:
        """The administrator's policy."""
        return self._executor.settings.policy or {}

    async def registry(self) -> dict[str, AgentCommand]:
        """Return the agents of the protocol's registry that are not known, by name."""
        url = self._executor.settings.agent_registry
        offered = await self._executor.in_thread(fetch_agents, url)
        known = self.known()
        started = {(each.npm_package or each.command[0]) for each in known.values()}
        return {
            each.name: each
            for each in offered
            if each.name not in known and (each.npm_package or each.command[0]) not in started
        }

    @property
    def at_work(self) -> dict[str, AgentSession]:
        """Sessions of running agents, by name."""
        return {name: held for name, held in self._sessions.items() if not held.problem}

    def use(self, name: str) -> None:
        """Select the agent that receives prompts.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        self.current = self._find(name).name

    async def prompt(
        self,
        text: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool | str = False,
        options: Mapping[str, str] | None = None,
        attachments: Sequence[Attachment] = (),
        context: Callable[[], str] = lambda: "",
        source: EventSource = "user",
        request: str = "",
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> AgentTurn:
        """Prompt an agent and wait for the end of its turn; cancelling this cancels the turn.

        Args:
            text: The prompt.
            agent: Its name; None for the last one used.
            new: Start a new conversation.
            resume: Resume its last conversation here, even from an earlier kernel, or the one with
                this id.
            options: Options of its session to set first, such as ``{"mode": "plan"}``.
            attachments: What goes with the prompt, such as a cell or a file.
            context: Returns the introduction that precedes an agent's first prompt.
            source: Who sends the prompt.
            request: Key of the request that sends it, which the turn repeats.
            on_change: Called on the loop when the turn changes.

        Returns:
            The turn.

        Raises:
            AgentError: The agent does not start or respond, or is busy with another prompt.
            AgentNotFoundError: There is no such agent, or it is not installed.
        """
        name = agent or self.current
        if name is None:
            known = ", ".join(self.known())
            raise AgentError(f'Say which agent: %oh_agent NAME "…". Agents: {known}')
        command = self._find(name)
        if not text.strip():
            raise AgentError(f'Write a prompt: %oh_agent {name} "…"')
        notices: tuple[str, ...] = ()
        async with self._starting:
            session = self._sessions.get(name)
            if session is not None and (new or session.problem or isinstance(resume, str)):
                if session.is_busy:
                    raise AgentError(f"{name} is busy with another prompt")
                await self._end(name)
                if session.problem and not (new or resume):
                    notices = (f"{session.problem} A new conversation was started.",)
                session = None
            if session is None:
                session = await self._start(command, resume)
            self.current = name
            await session.choose(options or {})
        await self._mark_undone()
        knows_nothing = await session.forget_undone() or (session.turns == 0 and not resume)
        introduction = context() if knows_nothing else ""
        turn = AgentTurn(
            name,
            text,
            attachments=tuple(each.name for each in attachments),
            request=request,
            notices=list(notices),
            latest_event=lambda: self._executor.events.latest_id,
        )

        def begin() -> None:
            self.turns.append(turn)
            self._on_turn(turn)

        def change(turn: AgentTurn) -> None:
            on_change(turn)
            self._on_turn(turn)

        try:
            return await session.prompt(
                turn,
                context=introduction,
                attachments=attachments,
                source=source,
                on_begin=begin,
                on_change=change,
            )
        finally:
            if command.needs_tools and session.tools is not None and not session.tools.connections:
                turn.notices.append(NO_TOOLS.format(name=name))
            if turn.began:
                self._on_turn(turn)
                await self._save_session(name, session.resumable_id)

    def _mark_undone_later(self) -> None:
        run_in_background(self._mark_undone())

    async def _mark_undone(self) -> None:
        """Mark the turns that rewinds have undone, and those that were restored."""
        turns = [turn for turn in self.turns if turn.checkpoint is not None]
        if not turns:
            return
        with suppress(CheckpointError):  # reported when a checkpoint is needed
            standing = await self._executor.turns.standing()
            for turn in turns:
                known = turn.checkpoint, turn.undone
                turn.checkpoint = self._executor.turns.latest(turn.checkpoint)
                turn.undone = turn.checkpoint not in standing
                if known != (turn.checkpoint, turn.undone):
                    self._on_turn(turn)

    async def list_sessions(self, name: str) -> list[SessionInfo]:
        """Return the conversations of this workspace that an agent knows, the latest first.

        Args:
            name: Name of the agent, which is started if it is not running.

        Raises:
            AgentError: The agent does not start, or does not list its conversations.
        """
        command = self._find(name)
        async with self._starting:
            session = self.at_work.get(name) or await self._start(command, False)
        return await session.list_sessions()

    async def delete_session(self, name: str, session_id: str) -> None:
        """Delete an earlier conversation of an agent, which is started if it is not running.

        Args:
            name: Name of the agent.
            session_id: The agent's id of the conversation.

        Raises:
            AgentError: The agent does not start, does not delete conversations, or is having this
                one.
        """
        command = self._find(name)
        async with self._starting:
            session = self.at_work.get(name) or await self._start(command, False)
        await session.delete_session(session_id)

    async def choose(self, name: str, wanted: Mapping[str, str]) -> tuple[AgentOption, ...]:
        """Set options of a running agent, and return all of them.

        Args:
            name: Name of the agent.
            wanted: Values by option, such as ``{"mode": "plan"}``.

        Raises:
            AgentError: The agent is not running, is busy, or has no such option or value.
        """
        session = self.at_work.get(self._find(name).name)
        if session is None:
            raise AgentError(f"{name} is not running. Its first prompt starts it")
        await session.choose(wanted)
        return session.options

    def choices(self, option: str) -> list[str]:
        """Return the values of an option, such as ``mode``, of the current agent if it runs.

        Args:
            option: Id or category of the option.
        """
        session = self.at_work.get(self.current or "")
        offered = None if session is None else session.option(option)
        return [] if offered is None else [choice.value for choice in offered.choices]

    async def _start(self, command: AgentCommand, resume: bool | str) -> AgentSession:
        try:
            from oh_jupyter.agents.session import AgentSession
        except ModuleNotFoundError as error:
            if error.name not in ("acp", "pydantic"):
                raise
            raise AgentError(
                "Agents need the package agent-client-protocol. Install it with: "
                'pip install "oh_jupyter[agents]"'
            ) from None
        command.arguments()  # fail early if it is not installed
        session_id = resume if isinstance(resume, str) else None
        if resume is True:
            session_id = await self._executor.in_thread(
                saved_session, self._executor.workspace_dir, command.name
            )
        if resume and session_id is None:
            raise AgentError(f"There is no earlier conversation with {command.name} here")
        session = AgentSession(self._executor, command, self._offer)
        await session.start(session_id)
        self._sessions[command.name] = session
        await self._save_session(command.name, session.resumable_id)
        return session

    def interrupt(self, name: str) -> None:
        """End an agent's turn; the agent stays ready for the next prompt.

        Args:
            name: Name of the agent.
        """
        if name in self._sessions:
            self._sessions[name].interrupt()

    async def stop(self, name: str | None = None) -> list[str]:
        """Stop one agent or all of them.

        Args:
            name: Name of the agent; None for all.

        Returns:
            The names of the stopped agents.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        if name is not None and name not in self._sessions:
            self._find(name)
        names = [name] if name is not None else list(self._sessions)
        stopped = [name for name in names if name in self._sessions]
        for each in stopped:
            await self._end(each)
        return stopped

    async def _end(self, name: str) -> None:
        session = self._sessions.pop(name)
        await session.close()

    async def _save_session(self, name: str, session_id: str | None) -> None:
        with suppress(LedgerError):  # the conversation continues, it just cannot be resumed later
            await self._executor.in_thread(
                save_session, self._executor.workspace_dir, name, session_id
            )
