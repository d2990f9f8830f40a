"""An agent's conversation: its session, earlier ones to which a rewind returns, and undone turns.

After a person has undone a turn, its agent gets a notice, or continues without a memory of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import acp
from acp.schema import AgentCapabilities, SessionCapabilities

from oh_jupyter.agents.options import Ask, SessionOptions
from oh_jupyter.agents.turn import AgentTurn
from oh_jupyter.background import run_in_background
from oh_jupyter.errors import AgentError
from oh_jupyter.text import shorten

MAX_PROMPT_CHARS = 80
MAX_FILES = 10

MAX_TEXT_CHARS = 4000
"""Maximum length of a text of the person or the agent in what came before."""

MAX_BEFORE_CHARS = 40_000
"""Maximum length of what came before; the oldest turns are left out."""

UNDONE = (
    "Note from oh_jupyter: the user undid your turn {prompt!r}{files}. Files and variables are as "
    "before it; read them again, and do not repeat the changes unless asked."
)
RESTORED = (
    "Note from oh_jupyter: the user restored your turn {prompt!r}{files}, which was undone. Its "
    "changes are in place again; read the files again."
)


BEFORE = (
    "Note from oh_jupyter: the user undid turns of this conversation, with their changes of files "
    "and variables, so it continues from before them. What was said before:"
)


class UndoneTurns:
    """Turns of one conversation, and which of them the agent knows to be undone."""

    def __init__(self) -> None:
        self._turns: list[AgentTurn] = []
        self._reported: set[int] = set()

    def add(self, turn: AgentTurn) -> int:
        """Add a turn that starts; return its number."""
        self._turns.append(turn)
        return len(self._turns) - 1

    @property
    def standing(self) -> tuple[int, ...]:
        """Numbers of the turns that are not undone."""
        return tuple(number for number, turn in enumerate(self._turns) if not turn.undone)

    @property
    def has_news(self) -> bool:
        """Whether turns were undone or restored that the agent knows otherwise."""
        return any(turn.undone != (n in self._reported) for n, turn in enumerate(self._turns))

    def mark_reported(self) -> None:
        """Record that the agent knows the turns that stand, and no other."""
        self._reported = {n for n, turn in enumerate(self._turns) if turn.undone}

    def start_over(self) -> str:
        """Return what an agent without a memory needs to continue, or "" if that is nothing."""
        self.mark_reported()
        standing = [_said(self._turns[number]) for number in self.standing]
        size, first = 0, len(standing)
        while first > 0 and size + len(standing[first - 1]) <= MAX_BEFORE_CHARS:
            first -= 1
            size += len(standing[first])
        omitted = ["(Earlier turns are omitted.)"] if first > 0 else []
        return "\n\n".join([BEFORE, *omitted, *standing[first:]]) if standing else ""

    def notice(self) -> str:
        """Return what the agent does not know yet, or ""; it is then reported."""
        lines = []
        for number, turn in enumerate(self._turns):
            if turn.undone != (number in self._reported):
                lines.append(_line(turn))
                self._reported ^= {number}
        return "\n".join(lines)


def _said(turn: AgentTurn) -> str:
    person, agent = (shorten(text.strip(), MAX_TEXT_CHARS) for text in (turn.prompt, turn.text))
    return f"User: {person}\nYou: {agent or '(nothing)'}"


def _line(turn: AgentTurn) -> str:
    prompt = shorten(" ".join(turn.prompt.split()), MAX_PROMPT_CHARS)
    changed = [*turn.changed_files, *turn.changed_by_commands]
    more = f" and {len(changed) - MAX_FILES} more" if len(changed) > MAX_FILES else ""
    files = f" ({', '.join(changed[:MAX_FILES])}{more})" if changed else ""
    return (UNDONE if turn.undone else RESTORED).format(prompt=prompt, files=files)


logger = logging.getLogger(__name__)

MAX_PAST_SESSIONS = 50
"""Maximum number of earlier sessions to which a rewind can return."""

T = TypeVar("T")


@dataclass(frozen=True)
class PastSession:
    """A session that is not prompted any more, so that it stays as it is.

    Attributes:
        id: The agent's id of the session.
        turns: Numbers of the turns that it remembers.
    """

    id: str
    turns: tuple[int, ...]


class Conversation:
    """The conversation with one agent, over one or more of its sessions.

    An agent that forks sessions gets each prompt in a new fork, so that the session before it
    remembers exactly the turns before it. After a rewind, the conversation continues from there.
    """

    def __init__(
        self,
        name: str,
        connection: acp.ClientSideConnection,
        ask: Ask,
        find_timeout_seconds: Callable[[], float],
    ) -> None:
        """Start without a session.

        Args:
            name: The agent's name.
            connection: The connection to it.
            ask: Sends a request over the connection.
            find_timeout_seconds: Returns how long a new session may take.
        """
        self.session_id = ""
        self.resumable_id = ""
        """The latest session with a prompt, which a later kernel can resume."""
        self.options = SessionOptions(name, connection, ask)
        """The options of its session."""
        self._name = name
        self._connection = connection
        self._ask = ask
        self._find_timeout_seconds = find_timeout_seconds
        self._can_load = self._can_fork = self._can_resume = self._can_close = False
        self._parameters: dict[str, Any] = {}
        self._undone = UndoneTurns()
        self._remembered: tuple[int, ...] = ()
        self._past: deque[PastSession] = deque(maxlen=MAX_PAST_SESSIONS)
        self._is_prompted = False
        self._is_resumed = False
        self._before = ""
        self._forking: asyncio.Task[None] | None = None

    async def open(
        self, capabilities: AgentCapabilities, parameters: dict[str, Any], resume: str | None
    ) -> None:
        """Start a new session, or continue an earlier one; raise AgentError on failure.

        Args:
            capabilities: What the agent declares.
            parameters: Parameters of each session.
            resume: Id of the earlier session; None for a new one.
        """
        offered = capabilities.session_capabilities or SessionCapabilities()
        self._can_load = bool(capabilities.load_session)
        self._can_fork = offered.fork is not None
        self._can_resume = offered.resume is not None
        self._can_close = offered.close is not None
        self._parameters = parameters
        if resume is None:
            self.session_id = self.resumable_id = await self._new_session()
            return
        if not self._can_load:
            raise AgentError(f"{self._name} cannot resume an earlier conversation")
        opened = await self._ask(self._connection.load_session(session_id=resume, **parameters))
        await self.options.adopt(resume, opened)
        self.session_id = self.resumable_id = resume
        self._is_resumed = self._is_prompted = True
        self.keep_for_return()

    def close(self) -> None:
        """Make no more sessions."""
        if self._forking is not None:
            self._forking.cancel()

    async def _new_session(self) -> str:
        created = await self._ask(self._connection.new_session(**self._parameters))
        await self.options.adopt(created.session_id, created)
        return str(created.session_id)

    def begin(self, turn: AgentTurn) -> str:
        """Add a turn that starts, and return what the agent must read before its prompt."""
        notice, before = self._undone.notice(), self._before
        self._before = ""
        self._remembered = (*self._remembered, self._undone.add(turn))
        self._is_prompted = True
        self.resumable_id = self.session_id
        return "\n\n".join(filter(None, (before, notice)))

    def keep_for_return(self, cancelling: asyncio.Task[None] | None = None) -> None:
        """Fork the session in the background once its turn is over, and leave it as it is then."""
        if self._can_fork and self._is_prompted:
            self._forking = run_in_background(self._continue_in_fork(cancelling))

    async def wait_for_fork(self) -> None:
        """Wait until the session for the next prompt exists."""
        if self._forking is not None:
            await asyncio.wait({self._forking})

    async def _continue_in_fork(self, cancelling: asyncio.Task[None] | None) -> None:
        if cancelling is not None:
            await asyncio.wait({cancelling})
        session_id = await self._attempt(self._fork(self.session_id))
        if session_id is not None:
            self._switch(session_id, self._remembered)

    async def forget_undone(self) -> bool:
        """Continue without the undone turns; return whether the agent then remembers nothing.

        The conversation returns to the session that remembers exactly the turns that stand. Without
        one, a new session starts with what was said in them. Without sessions, the next prompt
        reports what was undone.
        """
        await self.wait_for_fork()
        standing = self._undone.standing
        if not self._undone.has_news or standing == self._remembered:
            return False
        if await self._return_to(standing):
            self._undone.mark_reported()
            return False
        if self._is_resumed or not (self._can_fork or self._can_load):
            return False
        session_id = await self._attempt(self._new_session())
        if session_id is None:
            return False
        self._switch(session_id, standing)
        self._before = self._undone.start_over()
        return True

    async def _return_to(self, turns: tuple[int, ...]) -> bool:
        """Continue from a past session that remembers these turns, if there is one."""
        past = next((past for past in reversed(self._past) if past.turns == turns), None)
        if past is None:
            return False
        is_fork = self._can_fork
        session_id = await self._attempt((self._fork if is_fork else self._reopen)(past.id))
        if session_id is None or not is_fork:  # it is gone, or will be prompted
            self._past.remove(past)
        if session_id is None:
            return False
        self._switch(session_id, turns)
        self._is_prompted = not is_fork
        return True

    async def _fork(self, session_id: str) -> str:
        forked = await self._ask(
            self._connection.fork_session(session_id=session_id, **self._parameters)
        )
        await self.options.adopt(forked.session_id, forked)
        return str(forked.session_id)

    async def _reopen(self, session_id: str) -> str:
        """Open a closed session again; raise AgentError if it is gone."""
        parameters = {"session_id": session_id, **self._parameters}
        if self._can_resume:
            opened: Any = await self._ask(self._connection.resume_session(**parameters))
        elif self._can_load:
            opened = await self._ask(self._connection.load_session(**parameters))
        else:
            raise AgentError(f"{self._name} cannot open {session_id} again")
        await self.options.adopt(session_id, opened)
        return session_id

    def _switch(self, session_id: str, turns: tuple[int, ...]) -> None:
        """Continue in a new session; keep the current one for a return if it was prompted."""
        old = self.session_id
        if self._is_prompted:
            self._past.append(PastSession(old, self._remembered))
        self.session_id, self._remembered, self._is_prompted = session_id, turns, False
        if self._can_close:
            run_in_background(self._close_session(old))

    async def _close_session(self, session_id: str) -> None:
        with suppress(AgentError):
            await self._ask(self._connection.close_session(session_id=session_id))

    async def _attempt(self, request: Coroutine[Any, Any, str]) -> str | None:
        """Return the id of another session, or None if the agent does not make it available."""
        try:
            async with asyncio.timeout(self._find_timeout_seconds()):
                return await request
        except AgentError as error:
            logger.warning("%s offers no other session: %s", self._name, error)
        except TimeoutError:
            self._can_fork = False  # the next prompt must not wait for that again
            logger.warning("%s did not respond to a request for another session", self._name)
        return None
