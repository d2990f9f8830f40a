"""``oh``: the runtime of this kernel for a person, with agents and checkpoints."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

# Other modules are imported where they are used, because ``%load_ext`` makes an ``Oh``.
from oh_jupyter.errors import CheckpointError, ConfirmationError, ServerNotFoundError
from oh_jupyter.kernel.action_methods import ActionMethods, KernelHost

if TYPE_CHECKING:
    from concurrent.futures import Future

    from acp.schema import SessionInfo

    from oh_jupyter.agents import AgentTurn, GuestAgents
    from oh_jupyter.agents.commands import AgentCommand
    from oh_jupyter.agents.options import AgentOption
    from oh_jupyter.checkpoints import Checkpoint, RewindPlan
    from oh_jupyter.client import Fleet
    from oh_jupyter.kernel.display.observations import Diff
    from oh_jupyter.runtime.approvals import ApprovalRule, Scope
    from oh_jupyter.runtime.confirmation import PendingAction

NO_GESTURE = (
    "Only a person can approve actions, by a cell of their own that says so itself; nothing was "
    "approved. Write %oh_confirm {id} with the number as a line of a cell, or use the panel"
)
"""Why a call approves nothing; "itself" excludes callbacks, threads, loops and variables."""

VARIABLES_STAY = "The kernel's variables stay as they are."


class Oh(ActionMethods):
    """The runtime of this kernel for a person: Actions, agents, checkpoints."""

    def __init__(self, host: KernelHost) -> None:
        """Wrap a kernel, whose runtime starts at its first use."""
        super().__init__(host)
        self._agents: GuestAgents | None = None
        self._making_agents = threading.Lock()

    @property
    def agents(self) -> GuestAgents:
        """The agents of this kernel."""
        with self._making_agents:
            if self._agents is None:
                from oh_jupyter.agents import GuestAgents

                self._agents = GuestAgents(
                    self._executor, self.host.guest_tools, self.host.show_turn
                )
            return self._agents

    def agent(
        self,
        prompt: str,
        agent: str | None = None,
        *,
        new: bool = False,
        resume: bool | str = False,
        options: Mapping[str, str] | None = None,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> AgentTurn:
        """Prompt a coding agent and wait for the end of its turn.

        Args:
            prompt: The prompt.
            agent: Name of the agent, such as claude or codex; None for the last one used.
            new: Start a new conversation.
            resume: Resume the last conversation here, even from an earlier kernel, or the one with
                this id.
            options: Options of its session to set first, such as ``{"mode": "plan"}``; they stay.
            on_change: Called on another thread when the turn changes.

        Returns:
            The turn: its text, steps, cost, and the diff of everything.

        Raises:
            AgentError: The agent is not installed, does not start, or does not respond.
            KeyboardInterrupt: The wait was interrupted; the turn is cancelled.
        """
        from oh_jupyter.kernel.cells.question import asked_in_cell

        request = self._prompt(prompt, agent, new, resume, options, on_change)
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
        resume: bool | str = False,
        options: Mapping[str, str] | None = None,
        on_change: Callable[[AgentTurn], None] = lambda turn: None,
    ) -> Future[AgentTurn]:
        """Prompt a coding agent like ``agent``, without waiting.

        Args:
            prompt: The prompt.
            agent: Name of the agent; None for the last one used.
            new: Start a new conversation.
            resume: Resume the last conversation here, or the one with this id.
            options: Options of its session to set first.
            on_change: Called on another thread when the turn changes.

        Returns:
            A future of the turn; cancelling it cancels the turn.
        """
        return self._runtime.submit(self._prompt(prompt, agent, new, resume, options, on_change))

    def _prompt(
        self,
        prompt: str,
        agent: str | None,
        new: bool,
        resume: bool | str,
        options: Mapping[str, str] | None,
        on_change: Callable[[AgentTurn], None],
    ) -> Coroutine[Any, Any, AgentTurn]:
        return self.agents.prompt(
            prompt,
            agent,
            new=new,
            resume=resume,
            options=options,
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

    def agent_options(
        self, agent: str, wanted: Mapping[str, str] | None = None
    ) -> tuple[AgentOption, ...]:
        """List the options of a running agent, such as mode and model, and set some of them.

        Args:
            agent: Name of the agent.
            wanted: Options to set first, such as ``{"mode": "plan"}``.

        Returns:
            The options in the agent's order.

        Raises:
            AgentError: The agent is not running, is busy, or has no such option or value.
        """
        return self._wait(self.agents.choose(agent, wanted or {}))

    def agent_sessions(self, agent: str) -> list[SessionInfo]:
        """List an agent's conversations in this workspace; the agent is started if necessary.

        Args:
            agent: Name of the agent.

        Returns:
            The conversations, the latest first; ``agent(…, resume=session_id)`` resumes one.

        Raises:
            AgentError: The agent does not start, or does not list its conversations.
        """
        return self._wait(self.agents.list_sessions(agent))

    def registered_agents(self) -> dict[str, AgentCommand]:
        """List the agents of the protocol's registry that are not installed here.

        Returns:
            The agents by name; none if the registry was never reached.
        """
        return self._wait(self.agents.registry())

    def delete_agent_session(self, agent: str, session_id: str) -> None:
        """Delete an earlier conversation of an agent, which is started if necessary.

        Args:
            agent: Name of the agent.
            session_id: Id of the conversation, as ``agent_sessions`` returns it.

        Raises:
            AgentError: The agent does not start, does not delete conversations, or is having this
                one.
        """
        self._wait(self.agents.delete_session(agent, session_id))

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

        server = self.host.find_server()
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
            variables: Also keep all of the kernel's variables, within the memory for them.

        Returns:
            The checkpoint.

        Raises:
            CheckpointError: git is missing, the workspace is too large, or the disk is full.
        """
        checkpoint = self._wait(self._executor.turns.mark(label))
        if variables:
            self._wait(self._executor.turns.mark_variables(checkpoint.id, in_cell=True))
        return checkpoint

    def rewind(
        self,
        id: int | AgentTurn | None = None,
        *,
        everything: bool = False,
        files: bool = True,
        variables: bool | None = None,
        preview: bool = False,
        path: str | None = None,
    ) -> RewindPlan:
        """Undo what agents changed since a checkpoint, in files and in variables.

        Changes by edits, commands and cells are undone alike, variables in the same objects.
        Changes by others stay, even within the same file; ``kept`` lists what cannot be reconciled.
        To undo a rewind, rewind to its own id.

        Args:
            id: The checkpoint, or the turn of an agent whose start it is; None for the start of the
                last turn that is not undone.
            everything: Also overwrite what others changed since, in files and in the variables
                that agents changed.
            files: Whether to restore files.
            variables: Whether to restore variables; by default unless ``path`` is set. A checkpoint
                of yours with variables restores all of them as they were.
            preview: Only report what would change.
            path: Restore only this file, absolute or relative to the workspace.

        Returns:
            The changes, by path and by variable.

        Raises:
            CheckpointError: No such checkpoint, an agent is working, a file cannot be written, or
                an agent's cell asks to restore variables.
        """
        from oh_jupyter.runtime.rewind import Scope
        from oh_jupyter.runtime.undo import rewind

        is_agents = self.host.in_agents_cell
        if is_agents and variables and not preview:
            raise CheckpointError(
                "Only a person can restore variables from a cell; this is an agent's cell. "
                "oh.rewind(variables=False) restores the files."
            )
        if variables is None:
            variables = path is None and not is_agents
        scope = Scope(path, files, variables, everything, in_cell=True, as_person=not is_agents)
        checkpoint = self._wait(self._executor.turns.checkpoint_id(_checkpoint_of(id)))
        principal = self._principal()
        plan = self._wait(rewind(self._executor, checkpoint, principal, scope, preview=preview))
        if preview or variables or path is not None:
            return plan
        return replace(plan, notes=[*plan.notes, VARIABLES_STAY])

    def rewind_diff(
        self,
        id: int | AgentTurn | None = None,
        *,
        everything: bool = False,
        path: str | None = None,
    ) -> Diff:
        """Compare the files now with what a rewind would restore.

        Args:
            id: See ``rewind``.
            everything: See ``rewind``.
            path: Compare only this file, absolute or relative to the workspace.

        Returns:
            A unified diff; for a notebook of its cells without their outputs.

        Raises:
            CheckpointError: No such checkpoint, or a file cannot be read.
        """
        from oh_jupyter.kernel.display.html import with_relative_paths
        from oh_jupyter.kernel.display.observations import Diff
        from oh_jupyter.runtime.session_changes import joined_diff
        from oh_jupyter.runtime.undo import rewind_changes

        checkpoint = self._wait(self._executor.turns.checkpoint_id(_checkpoint_of(id)))
        changes = rewind_changes(self._executor, checkpoint, everything=everything, path=path)
        diff = joined_diff(self._wait(changes))
        return Diff(with_relative_paths(diff, self._executor.workspace_dir))

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
        values: Mapping[str, Any] | None = None,
    ) -> None:
        """Approve or reject an Action of an agent that waits for you, or answer its question.

        Args:
            id: Its id, as ``%oh_log`` shows it; None for the oldest one.
            approve: Whether it may start.
            why: Reason of a rejection, for the agent.
            for_session: Also approve later Actions of its type that wait for the same reasons.
            for_workspace: The same, in all later sessions in this workspace.
            values: Answers to the agent's question, by the names of its form.

        Raises:
            AnswerError: A value does not fit the form, or a required one is missing.
            ConfirmationError: No such Action waits, the text of your running cell does not say
                ``%oh_confirm`` or ``oh.confirm`` with this id, or the approval cannot be saved for
                the workspace.
        """
        from oh_jupyter.runtime.confirmation import Decision

        confirmations = self._executor.confirmations
        chosen = next(iter(confirmations.waiting), -1) if id is None else id
        scope: Scope = "workspace" if for_workspace else "session" if for_session else "once"
        if approve and self.host.in_agents_cell:
            raise ConfirmationError("Only a person can approve actions; this is an agent's cell")
        if approve and not self.host.approves(chosen, scope):
            raise ConfirmationError(NO_GESTURE.format(id=chosen))

        async def decide() -> None:
            decision = Decision(approve, "the notebook", why, scope, values or {})
            await confirmations.resolve(chosen, decision)

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
            ConfirmationError: There is no such approval, or the ledger cannot be written.
        """

        async def forget() -> None:
            await self._executor.in_thread(self._executor.confirmations.rules.forget, number)

        self._wait(forget())


def _checkpoint_of(target: int | AgentTurn | None) -> int | None:
    """Return the id of the checkpoint that a rewind names."""
    if target is None or (isinstance(target, int) and not isinstance(target, bool)):
        return target
    from oh_jupyter.agents import AgentTurn

    if not isinstance(target, AgentTurn):
        raise CheckpointError(
            f"oh.rewind takes the id of a checkpoint, or a turn as oh.agent(…) returns it, not "
            f"{target!r:.100}"
        )
    if target.checkpoint is None:
        raise CheckpointError("That turn has no checkpoint; %oh_rewind says why, and lists others.")
    return target.checkpoint
