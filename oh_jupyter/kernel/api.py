"""``oh``: the runtime of this kernel in a person's hands, with its agents and checkpoints."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

# All else is imported where it is used: ``%load_ext`` makes an ``Oh``, and pays for none of it.
from oh_jupyter.errors import ConfirmationError, ServerNotFoundError
from oh_jupyter.kernel.action_methods import ActionMethods

if TYPE_CHECKING:
    from concurrent.futures import Future

    from oh_jupyter.agents import AgentTurn, GuestAgents, ToolServer
    from oh_jupyter.checkpoints import Checkpoint, RewindPlan
    from oh_jupyter.client import Fleet
    from oh_jupyter.runtime import Runtime
    from oh_jupyter.runtime.confirmation import PendingAction

MAX_VARIABLE_SNAPSHOTS = 3
VARIABLES_STAY = "The kernel's variables stay as they are."


class Oh(ActionMethods):
    """The runtime of this kernel, in a person's hands: Actions, agents, checkpoints."""

    def __init__(
        self,
        start: Callable[[], Runtime],
        in_agents_cell: Callable[[], bool] = lambda: False,
        find_tools: Callable[[], ToolServer | None] = lambda: None,
        agent_context: Callable[[], str] = lambda: "",
        namespace: Callable[[], tuple[dict[str, Any], Mapping[str, Any]]] = lambda: ({}, {}),
        on_turn: Callable[[AgentTurn], None] = lambda turn: None,
        notice: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Wrap a runtime, which is started when it is first needed.

        ``start`` gives the one runtime there is, ``in_agents_cell`` tells whether the cell that
        runs now is an agent's, ``find_tools`` finds our MCP server for this kernel, and
        ``agent_context`` is what an agent is told first, ``namespace`` are the person's variables
        and the names that are not the person's, and ``on_turn`` is told what agents do. ``notice``
        shows a line while something takes long.
        """
        super().__init__(start, in_agents_cell, notice)
        self._find_tools = find_tools
        self.agent_context = agent_context
        self._namespace = namespace
        self._variables: dict[int, VariableSnapshot] = {}
        self._on_turn = on_turn
        self._agents: GuestAgents | None = None
        self._making_agents = threading.Lock()

    @property
    def agents(self) -> GuestAgents:
        """The agents that are guests of this kernel."""
        with self._making_agents:
            if self._agents is None:
                from oh_jupyter.agents import GuestAgents

                self._agents = GuestAgents(self._executor, self._find_tools, self._on_turn)
            return self._agents

    def agent(
        self,
        prompt: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool = False,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> AgentTurn:
        """Ask a coding agent, and wait until its turn is over.

        Args:
            prompt: What it is to do.
            agent: Which one, such as claude or codex; the one asked last when not given.
            new: Begin a new conversation.
            resume: Go on with the last conversation here, even that of an earlier kernel.
            on_change: Called beside the kernel when the turn has something new.

        Returns:
            The turn: its text, steps, cost, and the diff of everything.

        Raises:
            AgentError: The agent is not installed, does not start, or does not answer.
            KeyboardInterrupt: The wait was interrupted; the turn is cancelled.
        """
        from oh_jupyter.kernel.cells.question import asked_in_cell

        asking = self._prompting(prompt, agent, new, resume, on_change)
        if self._in_agents_cell():
            return self._wait(asking)
        with asked_in_cell(self._executor, self._runtime.submit):
            return self._wait(asking)

    def start_agent(
        self,
        prompt: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool = False,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> Future[AgentTurn]:
        """Ask a coding agent, see ``agent``, and go on while it works.

        Args:
            prompt: What it is to do.
            agent: Which one; the one asked last when not given.
            new: Begin a new conversation.
            resume: Go on with the last conversation here.
            on_change: Called beside the kernel when the turn has something new.

        Returns:
            A future of the turn; cancelling it cancels the turn.
        """
        return self._runtime.submit(self._prompting(prompt, agent, new, resume, on_change))

    def _prompting(
        self,
        prompt: str,
        agent: str | None,
        new: bool,
        resume: bool,
        on_change: Callable[[AgentTurn], None],
    ) -> Coroutine[Any, Any, AgentTurn]:
        return self.agents.prompt(
            prompt,
            agent,
            new=new,
            resume=resume,
            context=self.agent_context,
            source=self._principal(),
            on_change=on_change,
        )

    def stop_agent(self, agent: str | None = None) -> list[str]:
        """End an agent that is at work.

        Args:
            agent: Which one; None for all.

        Returns:
            The names of those that were ended.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        if self._agents is None and agent is None:
            return []
        return self._wait(self.agents.stop(agent))

    def undo_turn(self, turn: AgentTurn) -> list[str]:
        """Take back all edits of files that an agent's turn made.

        Args:
            turn: The turn.

        Returns:
            The files.

        Raises:
            EditorError: An edit cannot be taken back, since others changed the same place.
            AgentError: It is no turn.
        """
        return self._wait(self.agents.undo(turn))

    def fleet(
        self,
        size: int,
        *,
        kernel: str | None = None,
        path: str | None = None,
        name: str | None = None,
    ) -> Fleet:
        """Make a block in which several kernels of this kernel's server share some work.

        ``async with oh.fleet(8) as kernels: await kernels.map(function, items)``, or the same
        with a plain ``with``.

        Args:
            size: How many kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Where they start, relative to the server's root.
            name: What it is called in JupyterLab; None for a name that is made up.

        Returns:
            The block.

        Raises:
            ServerNotFoundError: No Jupyter server of this user has this kernel.
        """
        from oh_jupyter.client import Fleet

        server = self._find_tools()
        if server is None:
            raise ServerNotFoundError(
                "No Jupyter server with this kernel was found. Name one: "
                "oh_jupyter.client.Fleet(url, token, size)"
            )
        return Fleet(server.url, server.token, size, kernel=kernel, path=path, name=name)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The moments that one can go back to, the oldest first: beginnings of agents' turns."""
        return self._wait(self._executor.turns.entries())

    @property
    def checkpoint_problem(self) -> str:
        """Why turns of agents have no checkpoints; "" if they have."""
        return self._executor.turns.problem

    def checkpoint(self, label: str = "", *, variables: bool = False) -> Checkpoint:
        """Keep the files of the workspace as they are now, to go back to.

        Args:
            label: What to call it.
            variables: Keep copies of the kernel's variables, too, as long as it runs; they are
                kept of the last three such checkpoints.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: There is no git, the workspace is too large, or the disk is full.
        """
        checkpoint = self._wait(self._executor.turns.mark(label))
        if variables:
            self._keep_variables(checkpoint.id)
        return checkpoint

    def _keep_variables(self, id: int) -> None:
        self._variables[id] = _kept(*self._namespace())
        for old in list(self._variables)[:-MAX_VARIABLE_SNAPSHOTS]:
            del self._variables[old]

    def _restore_variables(self, id: int) -> str:
        """Bring the variables back; what of them stays as it is, as a sentence or ""."""
        snapshot = self._variables.get(id)
        if snapshot is None:
            return "The kernel's variables stay as they are: no copies were made then."
        stay = _restore(*self._namespace(), snapshot)
        names = ", ".join(sorted(stay))
        return f"These variables cannot be copied and stay as they are: {names}." if stay else ""

    def rewind(
        self,
        id: int | None = None,
        *,
        everything: bool = False,
        variables: bool = False,
        preview: bool = False,
        path: str | None = None,
    ) -> RewindPlan:
        """Undo what agents changed in the workspace since a checkpoint.

        Files are undone however they were changed: by edits, commands or cells. What others
        changed since stays, also within one text; what cannot be reconciled stays as it is and is
        in ``kept``. A rewind can be undone by a rewind to itself.

        Args:
            id: The checkpoint; None for the beginning of the last turn that is not undone.
            everything: Bring back all files, whoever changed them since.
            variables: Bring back the kernel's variables, where the checkpoint has copies of them;
                ``notes`` of the result tell what stays.
            preview: Only tell what would be done.
            path: The only file to bring back, absolute or relative to the workspace.

        Returns:
            What was done, path by path.

        Raises:
            CheckpointError: No such checkpoint, an agent is at work, or a file cannot be written.
        """
        from oh_jupyter.runtime.undo import rewind

        checkpoint = self._wait(self._executor.turns.checkpoint_id(id))
        plan = self._wait(
            rewind(
                self._executor,
                checkpoint,
                self._principal(),
                everything=everything,
                preview=preview,
                path=path,
            )
        )
        if preview or (path is not None and not variables):
            return plan
        note = self._restore_variables(checkpoint) if variables else VARIABLES_STAY
        return replace(plan, notes=[*plan.notes, note] if note else plan.notes)

    @property
    def waiting(self) -> dict[int, PendingAction]:
        """The Actions of agents that wait for you, by id."""
        return self._executor.confirmations.waiting

    def preview(self, id: int) -> str:
        """The diff that an edit would make which waits for you; "" for other Actions.

        Args:
            id: Its id.

        Returns:
            A unified diff.
        """
        return self._wait(self._executor.preview(self.waiting[id].action))

    def confirm(
        self,
        id: int | None = None,
        *,
        approve: bool = True,
        why: str = "",
        for_session: bool = False,
    ) -> None:
        """Let an agent's Action begin that waits for you, or reject it.

        Args:
            id: Its id, as ``%oh_log`` shows it; None for the one that waits longest.
            approve: Whether it may begin.
            why: What the agent is told about a rejection.
            for_session: Let later Actions of its type begin, too, that wait for the same reasons.

        Raises:
            ConfirmationError: No such Action waits, or it is an agent's cell that would approve.
        """
        from oh_jupyter.runtime.confirmation import Decision

        if approve and self._in_agents_cell():
            raise ConfirmationError("This is the cell of an agent: what waits is for a person")
        confirmations = self._executor.confirmations

        async def decide() -> None:
            chosen = next(iter(confirmations.waiting), -1) if id is None else id
            confirmations.resolve(chosen, Decision(approve, "the notebook", why, for_session))

        self._wait(decide())

    def forget_approvals(self) -> None:
        """Have Actions wait again that were approved for the session."""

        async def forget() -> None:
            self._executor.confirmations.allowed.clear()

        self._wait(forget())


@dataclass(frozen=True)
class VariableSnapshot:
    """Copies of variables by name, and the names of those that cannot be copied."""

    values: dict[str, Any] = field(repr=False)
    not_copied: frozenset[str]


def _kept(namespace: MutableMapping[str, Any], hidden: Mapping[str, Any]) -> VariableSnapshot:
    """Copy what a person has defined; two names of one object are so in the copy, too."""
    values, not_copied = _copied({n: namespace[n] for n in _own_names(namespace, hidden)})
    return VariableSnapshot(values, not_copied)


def _restore(
    namespace: MutableMapping[str, Any], hidden: Mapping[str, Any], snapshot: VariableSnapshot
) -> frozenset[str]:
    """Bring the variables back, and remove those defined since; the names that stay as they are."""
    values, _ = _copied(snapshot.values)  # so that one can go back once more
    for name in _own_names(namespace, hidden):
        if name not in values and name not in snapshot.not_copied:
            del namespace[name]
            namespace.update({name: hidden[name]} if name in hidden else {})
    namespace.update(values)
    return snapshot.not_copied


def _own_names(namespace: Mapping[str, Any], hidden: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in namespace.items()
        if not name.startswith("_") and not (name in hidden and hidden[name] is value)
    ]


def _copied(values: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    memo: dict[int, Any] = {}
    copies: dict[str, Any] = {}
    failed = set()
    for name, value in values.items():
        if isinstance(value, ModuleType):
            copies[name] = value
            continue
        try:
            copies[name] = copy.deepcopy(value, memo)
        except Exception:  # a type of anybody's may refuse in any way
            failed.add(name)
    return copies, frozenset(failed)
