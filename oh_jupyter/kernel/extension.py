"""Loading into a shell, and unloading without a trace.

Loading is cheap: modules are imported, and the runtime started, at first use, here or by a request.
The runtime starts at once only if a setting might be invalid, so that the error shows early.
"""

from __future__ import annotations

import atexit
import os
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from IPython.core.interactiveshell import InteractiveShell
from traitlets import TraitError

from oh_jupyter.background import start_thread
from oh_jupyter.config import Settings
from oh_jupyter.config.limits import is_wider, narrowed
from oh_jupyter.errors import ConfigError, OhJupyterError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.control import ControlChannel
from oh_jupyter.kernel.magics.lazy import LazyMagics
from oh_jupyter.policy import check_change
from oh_jupyter.traits import KernelTraits, settings_from_traits, show_settings
from oh_jupyter.trust import untrusted_notice

if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn
    from oh_jupyter.agents.tool_socket import GuestTools
    from oh_jupyter.checkpoints import RewindPlan
    from oh_jupyter.events import Action, Observation
    from oh_jupyter.kernel.cells.inspection import Inspector
    from oh_jupyter.kernel.cells.shell_cells import RunningCell
    from oh_jupyter.kernel.control.broadcast import TurnBroadcast
    from oh_jupyter.kernel.control.handler import ControlHandler
    from oh_jupyter.kernel.own_server import OwnServer
    from oh_jupyter.runtime import Runtime
    from oh_jupyter.runtime.approvals import Scope

_ATTRIBUTE = "_oh_jupyter"
_LIMITS = "_oh_jupyter_limits"
_READ_TEXT = "_oh_jupyter_read_text"
"""What of a runtime outlives a reload, which an agent's cell can ask for."""
_PLAN_TYPE = ("oh_jupyter.checkpoints.rewind", "RewindPlan")
_TURN_TYPE = ("oh_jupyter.agents.turn", "AgentTurn")

OBSERVATION_TYPES: dict[str, tuple[str, ...]] = {
    "oh_jupyter.events.observation": (
        "AgentThinkObservation",
        "BrowserOutputObservation",
        "CmdOutputObservation",
        "ErrorObservation",
        "FileDownloadObservation",
        "FileEditObservation",
        "FileReadObservation",
        "FileWriteObservation",
        "IPythonRunCellObservation",
        "MCPObservation",
        "NullObservation",
        "UserRejectObservation",
    ),
    "oh_jupyter.events.openhands": (
        "AgentCondensationObservation",
        "AgentDelegateObservation",
        "AgentStateChangedObservation",
        "LoopDetectionObservation",
        "RecallObservation",
        "SuccessObservation",
        "TaskTrackingObservation",
    ),
}
"""Names of the Observations by module; listed here to avoid their import."""

_CHECKED_SETTINGS = (
    "checkpoint_variables",
    "checkpoints",
    "confirmation",
    "file_store_web_hook_url",
    "mcp_servers",
    "plugins",
    "username",
)
"""Settings that a starting runtime may reject or that start work at once."""


_AGENT_SETTINGS = ("agent_directories", "agent_registry", "agents")
"""Settings that decide which agents can be asked."""

_LIVE_SETTINGS = frozenset(
    {
        *("agent_start_timeout", *_AGENT_SETTINGS),
        *("checkpoint_pause", "checkpoints"),
        *("checkpoint_variables", "checkpoint_variables_disk_mb", "checkpoint_variables_mb"),
        *("confirmation", "confirmation_timeout", "untrusted_text", "enable_browser"),
        "sandbox_hosts",
    }
)
"""Settings that a running runtime applies immediately."""


REPLY_SECONDS = 5.0
"""Time that pending requests get before an agent's cell ends the runtime."""


class LoadedExtension:
    """The runtime and ``oh``, loaded into a shell by ``%load_ext oh_jupyter``."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Load; an OhJupyterError leaves the shell unchanged."""
        self._shell = shell
        self._kernel: Any = getattr(shell, "kernel", None)
        self._generation = uuid.uuid4().hex
        self._traits, settings = _read_settings(shell)
        workspace = os.path.expanduser(settings.workspace_dir or os.getcwd())
        self._settings = replace(settings, workspace_dir=os.path.abspath(workspace))
        self._wider: dict[str, Any] = {}
        self._keep_limits(getattr(shell, _LIMITS, None))
        self._starting = threading.RLock()
        self._runtime: Runtime | None = None
        self._handler: ControlHandler | None = None
        self._cells: Any = None
        self._variables: Any = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._turns: TurnBroadcast | None = None
        if not _can_start_later(self._settings):
            self.runtime  # noqa: B018, to raise errors now
        self._restore_logging = self._log_json_lines()
        self.oh = Oh(self)
        self._control: ControlChannel | None = None
        if self._kernel is not None:
            self._control = ControlChannel(self._kernel, self._generation, self._control_handler)
        show_settings(self._traits, self._settings)
        if notice := untrusted_notice():
            print(f"{notice}.")
        self._traits.check = self._check_setting  # type: ignore[attr-defined]
        self._traits.observe(self._apply_setting)
        shell.configurables.append(self._traits)  # type: ignore[arg-type]
        self._magics = LazyMagics(shell, self.oh)
        shell.push({"oh": self.oh}, interactive=False)
        self._register_formatters()
        # IPython unloads before it reloads, and does not tell an extension which of both it does.
        manager = self._extension_manager = cast(Any, shell.extension_manager)
        self._reload_extension = manager.reload_extension
        manager.reload_extension = self._reload
        atexit.register(self._close_runtime)

    def _keep_limits(self, limits: Settings | None) -> None:
        """Keep the limits of agents from before a reload.

        The variables, the configuration and the directory that settings come from may have been
        changed by an agent's cell.
        """
        if limits is None:
            return
        self._settings, wider = narrowed(self._settings, limits)
        for name in wider:
            print(
                f"OhJupyter.{name} stays {getattr(limits, name)!r}, because it limits agents. To "
                f"widen it, write %config OhJupyter.{name} = ... in a cell of yours, then reload."
            )

    def _reload(self, module: str) -> Any:
        """Reload an extension; oh_jupyter only with valid settings, and after an agent's cell."""
        if module == "oh_jupyter":
            _check_before_reload(self._shell)
            if self.in_agents_cell:
                self._after_cell(
                    "reloaded", partial(self._extension_manager.reload_extension, module)
                )
                return None
        return self._reload_extension(module)

    def unload_after_cell(self, unload: Callable[[], object]) -> None:
        """Unload when the agent's running cell has ended."""
        self._after_cell("unloaded", unload)

    def _after_cell(self, what: str, work: Callable[[], object]) -> None:
        """Do something that ends the runtime when the agent's running cell has its reply."""
        print(f"oh_jupyter will be {what} when this cell has ended.")
        if self._kernel is None:
            call_at_end_of_cell(self._shell, work, lambda: self.in_agents_cell)
            return
        requests = [] if self._handler is None else self._handler.unanswered()

        def wait() -> None:
            wait_for(requests, timeout=REPLY_SECONDS)
            self._kernel.io_loop.add_callback(work)

        start_thread(wait, "oh-jupyter-reload")

    def _check_setting(self, name: str, value: Any) -> None:
        """Raise OhJupyterError for an invalid value, or one that needs a reload."""
        from oh_jupyter.runtime.runtime import setting_faults

        value = tuple(value) if isinstance(value, list) else value
        check_change(self._settings.policy or {}, name, value)
        for fault, error in setting_faults(replace(self._settings, **{name: value})):
            if fault == name:
                raise error
        self._check_wider(name, value)
        if self._runtime is not None and name not in _LIVE_SETTINGS:
            raise ConfigError(
                f"OhJupyter.{name} was read when the runtime started. To apply {value!r}, run "
                "%reload_ext oh_jupyter, which ends the shell and the browser; to make it "
                "permanent, set it in ipython_config.py"
            )

    def _check_wider(self, name: str, value: Any) -> None:
        """Raise ConfigError if a setting would allow agents more, and no person's cell says so.

        Before the runtime has started, there is no agent.
        """
        if self._runtime is None or self._kernel is None:
            return
        if not is_wider(name, getattr(self._settings, name), value):
            return
        if self.in_agents_cell or not self._cells.gestures.set(name, value):
            raise ConfigError(
                f"OhJupyter.{name} limits agents, so only a cell of yours that says so itself can "
                f"widen it; nothing was changed. Write %config OhJupyter.{name} = {value!r} as a "
                "line of a cell"
            )
        self._wider[name] = value

    def _apply_setting(self, change: Any) -> None:
        """Apply a setting to the current or the future runtime."""
        name, value = change["name"], change["new"]
        value = tuple(value) if isinstance(value, list) else value
        if value is None:
            value = getattr(Settings(), name)
        self._settings = replace(self._settings, **{name: value})
        if self._runtime is not None:
            self._runtime.executor.apply(self._settings)
        if self._turns is not None and name in _AGENT_SETTINGS:
            self._turns.agents_changed()

    @property
    def runtime(self) -> Runtime:
        """The runtime, started at first use, from any thread."""
        with self._starting:
            if self._runtime is None:
                self._runtime = self._start()
            return self._runtime

    def _start(self) -> Runtime:
        from oh_jupyter.kernel.cells.shell_cells import ShellCells
        from oh_jupyter.kernel.cells.variables import CellVariables
        from oh_jupyter.plugins import JupyterPlugin
        from oh_jupyter.runtime import Runtime

        cells = ShellCells(self._shell)
        plugin = JupyterPlugin(cells, output_limit=self._settings.cell_output_limit)
        try:
            runtime = Runtime(self._settings, {plugin.name: plugin}, generation=self._generation)
        except BaseException:
            cells.remove_guard()
            raise
        self._cells = cells
        self._variables = CellVariables(self._shell, runtime.executor, cells.is_executing)
        cells.around = self._variables.around
        cells.waiting = lambda: runtime.executor.confirmations.waiting
        runtime.executor.turns.variables = self._variables
        runtime.executor.turns.notebook_file = lambda: self.notebook_file
        runtime.executor.confirmations.lookup = self._shell.user_ns.get
        runtime.executor.untrusted_text.read |= getattr(self._shell, _READ_TEXT, {})
        if self._kernel is not None:
            self._broadcast_events(runtime)
        return runtime

    def _broadcast_events(self, runtime: Runtime) -> None:
        from oh_jupyter.kernel.cells.question import QuestionNotices
        from oh_jupyter.kernel.control.broadcast import Broadcast, TurnBroadcast

        broadcast = Broadcast(self._kernel, self._generation)
        self._turns = TurnBroadcast(broadcast)
        QuestionNotices(self._kernel, runtime.executor, lambda: self._cells.vscode_cell)
        runtime.executor.confirmations.on_decision(broadcast.send_decision)
        runtime.executor.turns.on_recorded = broadcast.send_settled

        self._unsubscribe = runtime.events.subscribe_to_wires(broadcast.send)

    def _control_handler(self) -> ControlHandler:
        """Return the handler of requests; on the control loop only."""
        if self._handler is None:
            from oh_jupyter.kernel.control.handler import ControlHandler

            self._handler = ControlHandler(self._kernel, self.runtime, self.oh)
        return self._handler

    def _log_json_lines(self) -> Callable[[], None]:
        if self._kernel is None or not os.environ.get("LOG_JSON"):
            return lambda: None
        from oh_jupyter.logs import log_json_lines

        def secrets() -> set[str]:
            return set() if self._runtime is None else set(self._runtime.events.secrets)

        return log_json_lines(secrets, {"kernel_id": _kernel_id(self._kernel)})

    @property
    def in_agents_cell(self) -> bool:
        """Whether the running cell is an agent's."""
        return self._cells is not None and bool(self._cells.is_agents)

    def approves(self, id: int, scope: Scope) -> bool:
        """Return whether a person's running cell itself says that it approves an Action."""
        if self.in_agents_cell:
            return False
        if self._kernel is None:  # IPython has no requests, and runs agents' cells during waits
            return True
        return self._cells is not None and bool(self._cells.gestures.approve(id, scope))

    def trusts(self) -> bool:
        """Return whether a person's running cell itself says that it trusts the folder."""
        if self.in_agents_cell:
            return False
        # Before the runtime has started, there is no agent.
        is_alone = self._kernel is None or self._cells is None
        return is_alone or bool(self._cells.gestures.trust())

    @property
    def inspector(self) -> Inspector:
        """Inspector of the notebook's variables."""
        from oh_jupyter.kernel.cells.inspection import Inspector

        return Inspector(self._shell)

    @property
    def running_cell(self) -> RunningCell | None:
        """The cell that the kernel executes, or None."""
        return None if self._cells is None else self._cells.running_cell

    def find_server(self) -> OwnServer | None:
        """Return the server that has this kernel, or None."""
        from oh_jupyter.kernel.own_server import find_server

        return None if self._kernel is None else find_server(_kernel_id(self._kernel))

    def guest_tools(self, guest: str) -> GuestTools:
        """Make the tools of an agent, by the name of its conversation."""
        from oh_jupyter.kernel.guest_tools.toolbox import GuestToolbox

        kernel_id = "ipython" if self._kernel is None else _kernel_id(self._kernel)
        return GuestToolbox(self.oh, guest, kernel_id, self._shell.user_ns, self.find_server)

    @property
    def workspace_dir(self) -> str:
        """Directory of the workspace."""
        return str(self._settings.workspace_dir)

    @property
    def notebook_file(self) -> str:
        """Absolute path of the notebook, on the machine of its editor, or ""."""
        from oh_jupyter.kernel.own_server import notebook_file

        return notebook_file(self._shell.user_ns)

    def agent_context(self) -> str:
        """Return the introduction that precedes an agent's first prompt."""
        from oh_jupyter.kernel.agent_context import agent_context

        return agent_context(self._shell, self.workspace_dir)

    def show_turn(self, turn: AgentTurn) -> None:
        """Report a change of an agent's turn to the frontends."""
        if self._turns is not None:
            self._turns.changed(turn)

    def notice(self, text: str) -> AbstractContextManager[Any]:
        """Show a line while something is slow."""
        from oh_jupyter.kernel.display.live import notice

        return notice(self._shell, text)

    def live_output(self, action: Action) -> AbstractContextManager[None]:
        """Show the output so far of an Action of the running cell."""
        from oh_jupyter.kernel.display.live_command import live_output

        return live_output(self._shell, self.runtime, action)

    def _register_formatters(self) -> None:
        """Register the display of Observations and of agents' turns."""
        formatters = self.formatters
        as_text, as_html = (partial(each, self.workspace_dir) for each in (_print_text, _html))
        for module, names in OBSERVATION_TYPES.items():
            for name in names:  # their __repr__ takes precedence over a base's printer
                formatters["text/plain"].for_type_by_name(module, name, as_text)
                formatters["text/html"].for_type_by_name(module, name, as_html)
        formatters["text/html"].for_type_by_name(*_PLAN_TYPE, _plan_html)
        display: Any = self._shell.display_formatter
        display.ipython_display_formatter.for_type_by_name(*_TURN_TYPE, self._show_turn)

    def _unregister_formatters(self) -> None:
        formatters = self.formatters
        for module, names in OBSERVATION_TYPES.items():
            for name in names:
                formatters["text/plain"].pop(f"{module}.{name}", None)
                formatters["text/html"].pop(f"{module}.{name}", None)
        formatters["text/html"].pop(".".join(_PLAN_TYPE), None)
        display: Any = self._shell.display_formatter
        display.ipython_display_formatter.pop(".".join(_TURN_TYPE), None)

    @property
    def formatters(self) -> Any:
        """The shell's formatters by MIME type."""
        assert self._shell.display_formatter is not None
        return self._shell.display_formatter.formatters

    def _show_turn(self, turn: AgentTurn) -> None:
        magics: Any = self._magics.load("oh_agent")
        magics.show(turn)

    def close(self) -> None:
        """Remove everything from the shell and end the runtime; an interrupt skips no step."""
        if self._runtime is not None:
            setattr(self._shell, _LIMITS, replace(self._settings, **self._wider))
            setattr(self._shell, _READ_TEXT, self._runtime.executor.untrusted_text.read)
        with ExitStack() as steps:  # the last one first
            steps.callback(self._shell.drop_by_id, {"oh": self.oh})
            steps.callback(self._magics.close)
            steps.callback(self._shell.configurables.remove, self._traits)
            steps.callback(self._unregister_formatters)
            steps.callback(self._restore_logging)
            steps.callback(self._close_runtime)
            steps.callback(atexit.unregister, self._close_runtime)
            steps.callback(self._extension_manager.__dict__.pop, "reload_extension", None)
            steps.callback(self._end_work)
            steps.callback(self._unsubscribe)
            if self._control is not None:
                steps.callback(self._control.close)

    def _end_work(self) -> None:
        """End the agent and the connection for cells."""
        if self._runtime is not None:
            self.oh.stop_agent()
            self._runtime.submit(self._cells.close()).result(timeout=5)

    def _close_runtime(self) -> None:
        if self._runtime is not None:
            self._runtime.close()
        if self._variables is not None:
            self._variables.close()


def call_at_end_of_cell(
    shell: InteractiveShell, work: Callable[[], object], is_inside: Callable[[], bool]
) -> None:
    """Call a function once when the person's running cell has ended."""
    events: Any = shell.events

    def after(*_: Any) -> None:
        if not is_inside():
            events.unregister("post_run_cell", after)
            work()

    events.register("post_run_cell", after)


def _read_settings(shell: InteractiveShell) -> tuple[Any, Settings]:
    """Return the traits and current settings; raise ConfigError for an invalid value."""
    try:
        traits = KernelTraits(parent=shell)
    except TraitError as error:
        raise ConfigError(str(error)) from None
    return traits, settings_from_traits(traits)


def _check_before_reload(shell: InteractiveShell) -> None:
    """Raise ConfigError for invalid settings before a reload ends the current runtime."""
    try:
        _, settings = _read_settings(shell)
        if not _can_start_later(settings):
            from oh_jupyter.runtime.runtime import setting_faults
            from oh_jupyter.storage.factory import make_file_store

            for _, fault in setting_faults(settings):
                raise fault
            make_file_store(replace(settings, file_store_web_hook_url=None))
    except (OhJupyterError, OSError) as error:
        raise ConfigError(
            f"{error}. Nothing was reloaded: oh and the magics stay as they were"
        ) from None


def _can_start_later(settings: Settings) -> bool:
    """Return whether a runtime has nothing to reject or to do at its start."""
    default = Settings()
    plain = all(getattr(settings, name) == getattr(default, name) for name in _CHECKED_SETTINGS)
    if not plain or settings.file_store not in ("local", "memory"):
        return False
    folders = [settings.workspace_dir, settings.file_store_path or "~"]
    return all(_is_writable(Path(folder or ".").expanduser()) for folder in folders)


def _is_writable(folder: Path) -> bool:
    """Return whether files can be created in a folder, which may not exist yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _print_text(root: str, observation: Observation, printer: Any, cycle: bool) -> None:
    from oh_jupyter.kernel.display.observations import observation_text

    printer.text(observation_text(observation, root))


def _html(root: str, observation: Observation) -> str:
    from oh_jupyter.kernel.display.observations import observation_html

    return observation_html(observation, root)


def _plan_html(plan: RewindPlan) -> str:
    from oh_jupyter.kernel.display.observations import plan_html

    return plan_html(plan)


def _kernel_id(kernel: Any) -> str:
    """Return the server's id of a kernel, which is in the name of its connection file."""
    file = str(getattr(kernel.parent, "connection_file", ""))
    return Path(file).stem.removeprefix("kernel-")


def load(shell: InteractiveShell) -> LoadedExtension:
    """Load oh_jupyter into a shell once; raise OhJupyterError for an invalid setting."""
    loaded: LoadedExtension | None = getattr(shell, _ATTRIBUTE, None)
    if loaded is None:
        loaded = LoadedExtension(shell)
        setattr(shell, _ATTRIBUTE, loaded)
    return loaded


def loaded() -> LoadedExtension | None:
    """Return the extension loaded into this process' shell, or None."""
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), _ATTRIBUTE, None)


def unload(shell: InteractiveShell) -> None:
    """Remove oh_jupyter from a shell."""
    loaded: LoadedExtension | None = getattr(shell, _ATTRIBUTE, None)
    if loaded is None:
        return
    if loaded.in_agents_cell:
        loaded.unload_after_cell(partial(unload, shell))
        return
    delattr(shell, _ATTRIBUTE)
    loaded.close()
