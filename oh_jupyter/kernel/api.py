"""``oh``: the runtime of this kernel for a person, with agents and checkpoints."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Other modules are imported where they are used, because ``%load_ext`` makes an ``Oh``.
from oh_jupyter.errors import ConfirmationError, ServerNotFoundError
from oh_jupyter.kernel.action_methods import ActionMethods, KernelHost

if TYPE_CHECKING:
    from concurrent.futures import Future

    from oh_jupyter.agents import AgentTurn, GuestAgents
    from oh_jupyter.checkpoints import Checkpoint, RewindPlan
    from oh_jupyter.client import Fleet
    from oh_jupyter.runtime.approvals import ApprovalRule, Scope
    from oh_jupyter.runtime.confirmation import PendingAction

MAX_VARIABLE_SNAPSHOTS = 3
VARIABLES_STAY = "The kernel's variables stay as they are."


class Oh(ActionMethods):
    """The runtime of this kernel for a person: Actions, agents, checkpoints."""

    def __init__(self, host: KernelHost) -> None:
        """Wrap a kernel, whose runtime starts at its first use."""
        super().__init__(host)
        self._variables: dict[int, VariableSnapshot] = {}
        self._agents: GuestAgents | None = None
        self._making_agents = threading.Lock()

    @property
    def agents(self) -> GuestAgents:
        """The agents of this kernel."""
        with self._making_agents:
            if self._agents is None:
                from oh_jupyter.agents import GuestAgents

                self._agents = GuestAgents(
                    self._executor, self.host.find_tools, self.host.show_turn
                )
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
        """Prompt a coding agent and wait for the end of its turn.

        Args:
            prompt: The prompt.
            agent: Name of the agent, such as claude or codex; None for the last one used.
            new: Start a new conversation.
            resume: Resume the last conversation here, even from an earlier kernel.
            on_change: Called on another thread when the turn changes.

        Returns:
            The turn: its text, steps, cost, and the diff of everything.

        Raises:
            AgentError: The agent is not installed, does not start, or does not respond.
            KeyboardInterrupt: The wait was interrupted; the turn is cancelled.
        """
        from oh_jupyter.kernel.cells.question import asked_in_cell

        request = self._prompt(prompt, agent, new, resume, on_change)
        if self.host.in_agents_cell:
            return self._wait(request)
        with asked_in_cell(self._executor, self._runtime.submit):
            return self._wait(request)

    def start_agent(
        self,
        prompt: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool = False,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> Future[AgentTurn]:
        """Prompt a coding agent like ``agent``, without waiting.

        Args:
            prompt: The prompt.
            agent: Name of the agent; None for the last one used.
            new: Start a new conversation.
            resume: Resume the last conversation here.
            on_change: Called on another thread when the turn changes.

        Returns:
            A future of the turn; cancelling it cancels the turn.
        """
        return self._runtime.submit(self._prompt(prompt, agent, new, resume, on_change))

    def _prompt(
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
            context=self.host.agent_context,
            source=self._principal(),
            on_change=on_change,
        )

    def stop_agent(self, agent: str | None = None) -> list[str]:
        """Stop a running agent.

        Args:
            agent: Name of the agent; None for all.

        Returns:
            The names of the stopped agents.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        if self._agents is None and agent is None:
            return []
        return self._wait(self.agents.stop(agent))

    def undo_turn(self, turn: AgentTurn) -> list[str]:
        """Undo all edits of files that an agent's turn made.

        Args:
            turn: The turn.

        Returns:
            The files.

        Raises:
            EditorError: Others changed the same lines since.
            AgentError: The argument is not a turn.
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
            size: Number of kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Their start directory, relative to the server's root.
            name: Name in JupyterLab; None for a generated one.

        Returns:
            The block.

        Raises:
            ServerNotFoundError: No Jupyter server of this user has this kernel.
        """
        from oh_jupyter.client import Fleet

        server = self.host.find_tools()
        if server is None:
            raise ServerNotFoundError(
                "No Jupyter server with this kernel was found. Name one: "
                "oh_jupyter.client.Fleet(url, token, size)"
            )
        return Fleet(server.url, server.token, size, kernel=kernel, path=path, name=name)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The checkpoints, oldest first: starts of agents' turns, marks and rewinds."""
        return self._wait(self._executor.turns.entries())

    @property
    def checkpoint_problem(self) -> str:
        """Why turns of agents have no checkpoints; "" if they have."""
        return self._executor.turns.problem

    def checkpoint(self, label: str = "", *, variables: bool = False) -> Checkpoint:
        """Save the files of the workspace, to return to them later.

        Args:
            label: A label.
            variables: Also copy the kernel's variables; copies exist for the last three such
                checkpoints, as long as the kernel runs.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: git is missing, the workspace is too large, or the disk is full.
        """
        checkpoint = self._wait(self._executor.turns.mark(label))
        if variables:
            self._save_variables(checkpoint.id)
        return checkpoint

    def _save_variables(self, id: int) -> None:
        self._variables[id] = _snapshot(*self.host.namespace())
        for old in list(self._variables)[:-MAX_VARIABLE_SNAPSHOTS]:
            del self._variables[old]

    def _restore_variables(self, id: int) -> str:
        """Restore the variables; return a sentence about those that stay, or ""."""
        snapshot = self._variables.get(id)
        if snapshot is None:
            return "The kernel's variables stay as they are: that checkpoint has no copies of them."
        unchanged = _restore(*self.host.namespace(), snapshot)
        names = ", ".join(sorted(unchanged))
        return (
            f"These variables cannot be copied and stay as they are: {names}." if unchanged else ""
        )

    def rewind(
        self,
        id: int | None = None,
        *,
        everything: bool = False,
        variables: bool = False,
        preview: bool = False,
        path: str | None = None,
    ) -> RewindPlan:
        """Undo the agents' changes in the workspace since a checkpoint.

        Changes by edits, commands and cells are undone alike. Changes by others stay, even within
        the same file; ``kept`` lists what cannot be reconciled. To undo a rewind, rewind to its own
        id.

        Args:
            id: The checkpoint; None for the start of the last turn that is not undone.
            everything: Restore all files, including files that others changed since.
            variables: Also restore the kernel's variables if the checkpoint has copies of them;
                ``notes`` of the result lists exceptions.
            preview: Only report what would change.
            path: Restore only this file, absolute or relative to the workspace.

        Returns:
            The changes, path by path.

        Raises:
            CheckpointError: No such checkpoint, an agent is working, or a file cannot be written.
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
        """Return the diff of an edit that waits for you; "" for other Actions.

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
        for_workspace: bool = False,
    ) -> None:
        """Approve or reject an Action of an agent that waits for you.

        Args:
            id: Its id, as ``%oh_log`` shows it; None for the oldest one.
            approve: Whether it may start.
            why: Reason of a rejection, for the agent.
            for_session: Also approve later Actions of its type that wait for the same reasons.
            for_workspace: The same, in all later sessions in this workspace.

        Raises:
            ConfirmationError: No such Action waits, the caller is an agent's cell, or the approval
                cannot be saved for the workspace.
        """
        from oh_jupyter.runtime.confirmation import Decision

        if approve and self.host.in_agents_cell:
            raise ConfirmationError("Only a person can approve actions; this is an agent's cell")
        confirmations = self._executor.confirmations

        async def decide() -> None:
            chosen = next(iter(confirmations.waiting), -1) if id is None else id
            scope: Scope = "workspace" if for_workspace else "session" if for_session else "once"
            confirmations.resolve(chosen, Decision(approve, "the notebook", why, scope))

        self._wait(decide())

    @property
    def approvals(self) -> list[ApprovalRule]:
        """The approvals that cover later Actions, of the session and of the workspace."""
        return self._executor.confirmations.rules.list()

    def forget_approvals(self, number: int | None = None) -> None:
        """Revoke approvals that cover later Actions.

        Args:
            number: Position in ``approvals``, counted from 1; None for all.

        Raises:
            ConfirmationError: There is no such approval, or the file cannot be written.
        """

        async def forget() -> None:
            self._executor.confirmations.rules.forget(number)

        self._wait(forget())


@dataclass(frozen=True)
class VariableSnapshot:
    """Copies of variables by name, and the names of those that cannot be copied."""

    values: dict[str, Any] = field(repr=False)
    not_copied: frozenset[str]


def _snapshot(namespace: MutableMapping[str, Any], hidden: Mapping[str, Any]) -> VariableSnapshot:
    """Copy the person's variables, preserving shared references."""
    values, not_copied = _copied({n: namespace[n] for n in _own_names(namespace, hidden)})
    return VariableSnapshot(values, not_copied)


def _restore(
    namespace: MutableMapping[str, Any], hidden: Mapping[str, Any], snapshot: VariableSnapshot
) -> frozenset[str]:
    """Restore the variables and remove newer ones; return the names that could not be copied."""
    values, _ = _copied(snapshot.values)  # so that the snapshot can be restored again
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
        except Exception:  # types may fail in any way
            failed.add(name)
    return copies, frozenset(failed)
