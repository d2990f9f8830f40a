"""``oh``: the same Actions from Python, as methods that wait for their Observation."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, cast

# All else is imported where it is used: ``%load_ext`` makes an ``Oh``, and pays for none of it.
from oh_jupyter.errors import ConfirmationError, ServerNotFoundError

if TYPE_CHECKING:
    from concurrent.futures import Future

    from oh_jupyter.agents import AgentTurn, GuestAgents, ToolServer
    from oh_jupyter.browser import BrowserEnv
    from oh_jupyter.browser.pool import BrowserPool
    from oh_jupyter.checkpoints import Checkpoint, RewindPlan
    from oh_jupyter.client import Fleet
    from oh_jupyter.config import Settings
    from oh_jupyter.editor import HistoryEntry
    from oh_jupyter.events import (
        Action,
        BrowserOutputObservation,
        CmdOutputObservation,
        EventSource,
        FileEditObservation,
        FileReadObservation,
        FileWriteObservation,
        IPythonRunCellObservation,
        MCPObservation,
        Observation,
    )
    from oh_jupyter.events.stream import EventStream
    from oh_jupyter.kernel.display.observations import Diff
    from oh_jupyter.kernel.variables import VariableSnapshot
    from oh_jupyter.runtime import ActionExecutor, Runtime
    from oh_jupyter.runtime.confirmation import PendingAction
    from oh_jupyter.runtime.replay import ReplayStep
    from oh_jupyter.storage import FileStore

__all__ = ["Oh"]

T = TypeVar("T")

MAX_VARIABLE_SNAPSHOTS = 3
VARIABLES_STAY = "The kernel's variables stay as they are."


class Oh:
    """The runtime of this kernel, in a person's hands.

    Each method makes an Action and returns its Observation. What cannot be done is an
    ``ErrorObservation``; arguments of a wrong type raise ``WireError``.
    """

    def __init__(
        self,
        start: Callable[[], Runtime],
        in_agents_cell: Callable[[], bool] = lambda: False,
        find_tools: Callable[[], ToolServer | None] = lambda: None,
        agent_context: Callable[[], str] = lambda: "",
        namespace: Callable[[], tuple[dict[str, Any], Collection[str]]] = lambda: ({}, ()),
    ) -> None:
        """Wrap a runtime, which is started when it is first needed.

        ``start`` gives the one runtime there is, ``in_agents_cell`` tells whether the cell that
        runs now is an agent's, ``find_tools`` finds our MCP server for this kernel, and
        ``agent_context`` is what an agent is told first, ``namespace`` are the person's variables
        and the names that are not the person's.
        """
        self._start = start
        self._in_agents_cell = in_agents_cell
        self._find_tools = find_tools
        self._agent_context = agent_context
        self._namespace = namespace
        self._variables: dict[int, VariableSnapshot] = {}
        self._agents: GuestAgents | None = None

    @property
    def _runtime(self) -> Runtime:
        return self._start()

    @property
    def _executor(self) -> ActionExecutor:
        return self._runtime.executor

    def __repr__(self) -> str:
        """Say where it works."""
        return f"<oh: {self._executor.workspace_dir}>"

    @property
    def settings(self) -> Settings:
        """What the operator set."""
        return self._executor.settings

    @property
    def store(self) -> FileStore:
        """The file store of events and artefacts."""
        return self._runtime.file_store

    @property
    def events(self) -> EventStream:
        """The log of all Actions and Observations, whoever asked for them."""
        return self._runtime.events

    @property
    def cwd(self) -> str:
        """The working directory of the shell, where relative paths start."""
        return self._executor.cwd

    @property
    def agents(self) -> GuestAgents:
        """The agents that are guests of this kernel."""
        if self._agents is None:
            from oh_jupyter.agents import GuestAgents

            async def make() -> GuestAgents:
                return GuestAgents(self._executor, self._find_tools)

            self._agents = self._runtime.submit(make()).result()
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
        with asked_in_cell(self._executor.confirmations, self._runtime.submit):
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
            context=self._agent_context,
            source=self._principal(),
            on_change=on_change,
        )

    def stop_agent(self, agent: str | None = None) -> list[str]:
        """End an agent that is at work.

        Args:
            agent: Which one; None for all.

        Returns:
            The names of those that were ended.
        """
        return [] if self._agents is None else self._wait(self._agents.stop(agent))

    def undo_turn(self, turn: AgentTurn) -> list[str]:
        """Take back all edits of files that an agent's turn made.

        Args:
            turn: The turn.

        Returns:
            The files.

        Raises:
            EditorError: An edit cannot be taken back, since others changed the same place.
        """
        return self._wait(self.agents.undo(turn))

    def fleet(self, size: int, *, kernel: str | None = None, path: str | None = None) -> Fleet:
        """Make a block in which several kernels of this kernel's server share some work.

        ``async with oh.fleet(8) as kernels: await kernels.map(function, items)``, or the same
        with a plain ``with``.

        Args:
            size: How many kernels.
            kernel: Name of their kernelspec; None for the server's default.
            path: Where they start, relative to the server's root.

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
        return Fleet(server.url, server.token, size, kernel=kernel, path=path)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """The moments that one can go back to, the oldest first: beginnings of agents' turns."""
        return self._executor.turns.checkpoints.entries()

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
        from oh_jupyter.kernel.variables import keep_variables

        self._variables[id] = keep_variables(*self._namespace())
        for old in list(self._variables)[:-MAX_VARIABLE_SNAPSHOTS]:
            del self._variables[old]

    def _restore_variables(self, id: int) -> str:
        """Bring the variables back; what of them stays as it is, as a sentence or ""."""
        from oh_jupyter.kernel.variables import restore_variables

        snapshot = self._variables.get(id)
        if snapshot is None:
            return "The kernel's variables stay as they are: no copies were made then."
        stay = restore_variables(*self._namespace(), snapshot)
        names = ", ".join(sorted(stay))
        return f"These variables cannot be copied and stay as they are: {names}." if stay else ""

    def rewind(
        self,
        id: int | None = None,
        *,
        everything: bool = False,
        variables: bool = False,
        preview: bool = False,
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

        Returns:
            What was done, path by path.

        Raises:
            CheckpointError: No such checkpoint, an agent is at work, or a file cannot be written.
        """
        if preview:
            turns = self._executor.turns
            if id is None:
                id = turns.checkpoints.last_turn().id
            return self._wait(turns.rewind(id, everything=everything, preview=True))
        if id is None:
            id = self._executor.turns.checkpoints.last_turn().id
        rewind = self._executor.rewind(id, self._principal(), everything=everything)
        plan = self._wait(rewind)
        note = self._restore_variables(id) if variables else VARIABLES_STAY
        return dataclasses.replace(plan, notes=[*plan.notes, note] if note else plan.notes)

    def status(self) -> dict[str, Any]:
        """Figures of the runtime.

        Returns:
            Directories, what is running, what has started.
        """
        return self._runtime.status()

    def execute(self, action: Action | dict[str, Any]) -> Observation:
        """Carry out an Action and wait for it.

        Args:
            action: The Action, or its wire form.

        Returns:
            Its Observation.

        Raises:
            WireError: The wire form cannot be read, or a field is of a wrong type.
            NotRunnableError: It is an Action such as ``message``, with nothing to execute.
            KeyboardInterrupt: The wait was interrupted; the Action is cancelled.
        """
        if isinstance(action, dict):
            from oh_jupyter.events.wire import action_from_wire

            action = action_from_wire(action)
        return self._wait(self._executor.run_action(action, self._principal()))

    def _principal(self) -> EventSource:
        return "agent" if self._in_agents_cell() else "user"

    @property
    def waiting(self) -> dict[int, PendingAction]:
        """The Actions of agents that wait for you, by id."""
        return self._executor.confirmations.waiting

    def confirm(self, id: int | None = None, *, approve: bool = True) -> None:
        """Let an agent's Action begin that waits for you, or reject it.

        Args:
            id: Its id, as ``%oh_log`` shows it; None for the one that waits longest.
            approve: Whether it may begin.

        Raises:
            ConfirmationError: No such Action waits, or it is an agent's cell that would approve.
        """
        if approve and self._in_agents_cell():
            raise ConfirmationError("This is the cell of an agent: what waits is for a person")
        confirmations = self._executor.confirmations

        async def decide() -> None:
            chosen = next(iter(confirmations.waiting), -1) if id is None else id
            confirmations.resolve(chosen, approve)

        self._wait(decide())

    def set_env(self, variables: dict[str, str]) -> None:
        """Set environment variables for the shell and for cells, with their literal values.

        Args:
            variables: Names and values.

        Raises:
            ShellError: A name or value cannot be that of an environment variable.
        """
        self._runtime.submit(self._executor.set_env(variables)).result()

    def _act(self, action: Action, timeout: float | None = None) -> Any:
        action.timeout = timeout
        return self.execute(action)

    def _absolute(self, path: str) -> str:
        """A path as the editor wants it; relative ones start at the shell's directory."""
        if not isinstance(path, str):  # refused like any other field of a wrong type
            return path
        return os.path.join(self.cwd, os.path.expanduser(path))

    def run(
        self,
        command: str,
        *,
        timeout: float | None = None,
        is_input: bool = False,
        blocking: bool = False,
        is_static: bool = False,
        cwd: str | None = None,
    ) -> CmdOutputObservation:
        """Run a command in the shell that person and agent share.

        Args:
            command: The command; "" fetches more output of the one that is running.
            timeout: Hard time limit in seconds.
            is_input: Send it to the running command.
            blocking: Wait for the end however long nothing is printed.
            is_static: Use a fresh shell that is thrown away.
            cwd: Directory of a static command.

        Returns:
            Its output and exit code.
        """
        from oh_jupyter.events import CmdRunAction

        action = CmdRunAction(
            command, is_input=is_input, blocking=blocking, is_static=is_static, cwd=cwd
        )
        return cast("CmdOutputObservation", self._act(action, timeout))

    def run_ipython(self, code: str, *, timeout: float | None = None) -> IPythonRunCellObservation:
        """Run a cell as an agent would, and get what an agent would see of it.

        Args:
            code: The cell.
            timeout: Seconds after which it is interrupted.

        Returns:
            Its output.
        """
        from oh_jupyter.events import IPythonRunCellAction

        return cast("IPythonRunCellObservation", self._act(IPythonRunCellAction(code), timeout))

    def read(
        self, path: str, *, view_range: list[int] | None = None, numbered: bool = False
    ) -> FileReadObservation:
        """Read a file.

        Args:
            path: The file; relative paths start at the shell's working directory, here as in
                all methods.
            view_range: First and last line, counted from 1; implies ``numbered``.
            numbered: As the editor shows it, with line numbers.

        Returns:
            Its content.
        """
        from oh_jupyter.events import FileReadAction

        action = FileReadAction(path)
        if numbered or view_range:
            path = self._absolute(path)
            action = FileReadAction(path, impl_source="oh_aci", view_range=view_range)
        return cast("FileReadObservation", self._act(action))

    def write(
        self, path: str, content: str, *, start: int = 0, end: int = -1
    ) -> FileWriteObservation:
        """Write a file, or replace lines of it.

        Args:
            path: The file.
            content: The lines to put there.
            start: First line to replace, counted from 0.
            end: Line after the last; -1 for the end.

        Returns:
            Where it was written.
        """
        from oh_jupyter.events import FileWriteAction

        action = FileWriteAction(path, content, start, end)
        return cast("FileWriteObservation", self._act(action))

    def edit(self, command: str, path: str, **args: Any) -> FileEditObservation:
        """Edit a file.

        Args:
            command: view, create, str_replace, insert, write, apply_patch, notebook_edit,
                undo_edit or redo_edit.
            path: The file; for a patch the directory of its files.
            **args: What the command needs, such as ``file_text``, ``old_str``, ``new_str``,
                ``insert_line`` or ``content``; ``dry_run`` and ``enable_linting``.

        Returns:
            What the editor says, and the diff.

        Raises:
            WireError: There is no such argument.
        """
        from oh_jupyter.events import FileEditAction
        from oh_jupyter.events.fields import build

        arguments = {"path": self._absolute(path), "command": command, **args}
        action = build(FileEditAction, arguments, "args", ignore_unknown=False)
        return cast("FileEditObservation", self.execute(cast("FileEditAction", action)))

    def history(self, path: str) -> list[HistoryEntry]:
        """List the edits of a file that can be undone or redone.

        Args:
            path: The file, which need not exist any more.

        Returns:
            The edits, the oldest first.
        """
        return self.call(self._executor.editor.history, self._absolute(path))

    def diff(self, path: str, steps: int = 1) -> Diff:
        """Compare a file with what it was some edits ago.

        Args:
            path: The file.
            steps: How many edits to look back.

        Returns:
            A unified diff, which shows itself in colours.

        Raises:
            EditorError: There are not as many edits, or somebody else changed the file since.
        """
        from oh_jupyter.kernel.display.observations import Diff

        return Diff(self.call(self._executor.editor.diff, self._absolute(path), steps))

    def browse(self, url: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Open a page.

        Args:
            url: Its address.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            Its text and a screenshot.
        """
        from oh_jupyter.events import BrowseURLAction

        action = BrowseURLAction(url, return_axtree=return_axtree)
        return cast("BrowserOutputObservation", self._act(action))

    def interact(self, actions: str, *, return_axtree: bool = False) -> BrowserOutputObservation:
        """Act on the page that is open.

        Args:
            actions: Calls of BrowserGym's action language, such as ``click("12")``.
            return_axtree: Also return the accessibility tree as an object.

        Returns:
            The page afterwards, with the accessibility tree as text.
        """
        from oh_jupyter.events import BrowseInteractiveAction

        action = BrowseInteractiveAction(actions, return_axtree=return_axtree)
        return cast("BrowserOutputObservation", self._act(action))

    def tool(self, name: str, **arguments: Any) -> MCPObservation:
        """Call a tool by name: an agent skill, or a tool of a configured MCP server.

        Args:
            name: Its name.
            **arguments: Its arguments.

        Returns:
            The result, as JSON of the Model Context Protocol.
        """
        from oh_jupyter.events import MCPAction

        return cast("MCPObservation", self._act(MCPAction(name, arguments)))

    def replay(
        self,
        log: EventStream | None = None,
        *,
        folder: str | None = None,
        until: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[ReplayStep]:
        """Carry out the Actions of a session again, in a fresh runtime, and compare.

        Args:
            log: The session's log; that of the current one when not given.
            folder: Where to work; a temporary directory when not given.
            until: Id of the event before which to stop.
            kinds: Types of the Actions; all when not given.

        Returns:
            One step for each Action that was carried out.
        """
        from oh_jupyter.runtime.replay import Replayer

        replayer = Replayer(self._executor.settings, self._executor.workspace_dir)
        try:
            return self.call(
                replayer.run, log or self.events, folder=folder, until=until, kinds=kinds
            )
        finally:
            replayer.stop()

    def tables(self, url: str | None = None) -> list[Any]:
        """Read the tables of the page that is open, or of another one.

        Args:
            url: Address to open first.

        Returns:
            One pandas DataFrame for each table.

        Raises:
            BrowserError: The page cannot be read, or pandas is not installed.
        """
        from oh_jupyter.browser.tables import read_tables

        if url is not None:
            self.browse(url)
        return self.call(read_tables, self.browser)

    @property
    def browsers(self) -> BrowserPool:
        """The browsers by name; ``oh.browsers.use("other")`` changes to one of its own."""
        return self._executor.browsers

    @property
    def browser(self) -> BrowserEnv:
        """The current browser, for what is no Action: log-ins, traces, JavaScript."""
        return self.browsers.current

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a blocking function beside the kernel, and wait for it as for an Action.

        Args:
            function: What to call.
            *args: Its arguments.
            **kwargs: Its keyword arguments.

        Returns:
            What it returns.

        Raises:
            KeyboardInterrupt: The wait was interrupted.
        """
        return self._wait(self._executor.in_thread(function, *args, **kwargs))

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        from oh_jupyter.kernel.cells.main_thread import MainThreadWait

        if threading.current_thread() is threading.main_thread():
            found: T = MainThreadWait().wait_for(self._runtime.submit, coroutine)
            return found
        return self._runtime.submit(coroutine).result()
