"""Loading into a shell, and unloading without a trace.

Loading costs a kernel little: what is used is imported, and the runtime started, when it is first
needed, here or by a request. Only where a setting might be wrong it starts at once, to tell so.
"""

from __future__ import annotations

import atexit
import os
import threading
import traceback
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets import TraitError

from oh_jupyter.config import Settings
from oh_jupyter.errors import ConfigError, OhJupyterError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.control import ControlChannel
from oh_jupyter.kernel.magics.lazy import LazyMagics
from oh_jupyter.traits import KernelTraits, settings_from_traits, show_settings

if TYPE_CHECKING:
    from oh_jupyter.agents import AgentTurn, ToolServer
    from oh_jupyter.events import Event, Observation
    from oh_jupyter.kernel.control.handler import ControlHandler
    from oh_jupyter.runtime import Runtime

_ATTRIBUTE = "_oh_jupyter"
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
"""Names of the Observations by their modules, which are not imported for it."""

_CHECKED_SETTINGS = (
    "checkpoints",
    "confirmation",
    "file_store_web_hook_url",
    "mcp_servers",
    "plugins",
    "username",
)
"""Settings that a runtime refuses at its start if they are wrong, or has work with at once."""


_LIVE_SETTINGS = frozenset(
    {
        *("agent_start_timeout", "agents", "checkpoint_pause", "checkpoints"),
        *("confirmation", "confirmation_timeout", "enable_browser"),
    }
)
"""Settings that a runtime uses from the moment at which they are set."""


class LoadedExtension:
    """What ``%load_ext oh_jupyter`` put into a shell: the runtime, and ``oh``."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Load; on an OhJupyterError the shell is unchanged."""
        self._shell = shell
        self._kernel: Any = getattr(shell, "kernel", None)
        self._generation = uuid.uuid4().hex
        self._traits, settings = _what_is_set(shell)
        workspace = os.path.expanduser(settings.workspace_dir or os.getcwd())
        self._settings = replace(settings, workspace_dir=os.path.abspath(workspace))
        self._starting = threading.RLock()
        self._runtime: Runtime | None = None
        self._handler: ControlHandler | None = None
        self._cells: Any = None
        self._unsubscribe: Callable[[], None] = lambda: None
        self._send_turn: Callable[[AgentTurn], None] = lambda turn: None
        if not _can_start_later(self._settings):
            self.runtime  # noqa: B018, an error is told now
        self._restore_logging = self._log_json_lines()
        self.oh = Oh(
            lambda: self.runtime,
            lambda: self._cells is not None and self._cells.is_agents,
            self._find_tools,
            self._agent_context,
            lambda: (shell.user_ns, shell.user_ns_hidden),
            lambda turn: self._send_turn(turn),
            self._notice,
        )
        self._control: ControlChannel | None = None
        if self._kernel is not None:
            self._control = ControlChannel(self._kernel, self._generation, self._control_handler)
        show_settings(self._traits, self._settings)
        self._traits.check = self._check_setting  # type: ignore[attr-defined]
        self._traits.observe(self._apply_setting)
        shell.configurables.append(self._traits)  # type: ignore[arg-type]
        self._magics = LazyMagics(shell, self.oh)
        shell.push({"oh": self.oh}, interactive=False)
        self._register_formatters()
        atexit.register(self._close_runtime)

    def _check_setting(self, name: str, value: Any) -> None:
        """Refuse a value that could not be loaded, or not any more (OhJupyterError)."""
        from oh_jupyter.runtime.runtime import setting_faults

        value = tuple(value) if isinstance(value, list) else value
        for fault, problem in setting_faults(replace(self._settings, **{name: value})):
            if fault == name:
                raise problem
        if self._runtime is not None and name not in _LIVE_SETTINGS:
            raise ConfigError(
                f"OhJupyter.{name} was read when the runtime started. To apply {value!r}, run "
                "%reload_ext oh_jupyter, which ends the shell and the browser; to make it "
                "permanent, set it in ipython_config.py"
            )

    def _apply_setting(self, change: Any) -> None:
        """Use a setting from now on: in the runtime that is there, or in the one to come."""
        name, value = change["name"], change["new"]
        value = tuple(value) if isinstance(value, list) else value
        if value is None:
            value = getattr(Settings(), name)
        self._settings = replace(self._settings, **{name: value})
        if self._runtime is not None:
            self._runtime.executor.apply(self._settings)

    @property
    def runtime(self) -> Runtime:
        """The runtime, started when it is first asked for; from any thread."""
        with self._starting:
            if self._runtime is None:
                self._runtime = self._start()
            return self._runtime

    def _start(self) -> Runtime:
        from oh_jupyter.kernel.cells.shell_cells import ShellCells
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
        runtime.executor.confirmations.lookup = self._shell.user_ns.get
        if self._kernel is not None:
            self._broadcast_events(runtime)
        return runtime

    def _broadcast_events(self, runtime: Runtime) -> None:
        from oh_jupyter.events.wire import to_wire
        from oh_jupyter.kernel.control.broadcast import Broadcast, TurnBroadcast

        broadcast = Broadcast(self._kernel, self._generation)
        self._send_turn = TurnBroadcast(broadcast).changed
        runtime.executor.confirmations.on_decision(broadcast.send_decision)
        runtime.executor.turns.on_settled = broadcast.send_settled

        def send(event: Event) -> None:
            broadcast.send(to_wire(event))

        self._unsubscribe = runtime.events.subscribe(send)

    def _control_handler(self) -> ControlHandler:
        """The handler of requests; on the control loop only."""
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

    def _find_tools(self) -> ToolServer | None:
        from oh_jupyter.kernel.agent_context import find_tool_server

        return None if self._kernel is None else find_tool_server(_kernel_id(self._kernel))

    def _notice(self, text: str) -> AbstractContextManager[Any]:
        from oh_jupyter.kernel.display.live import notice

        return notice(self._shell, text)

    def _agent_context(self) -> str:
        from oh_jupyter.kernel.agent_context import agent_context

        return agent_context(self._shell)

    def _register_formatters(self) -> None:
        """Teach the shell to show Observations, of whatever type, and turns of agents."""
        formatters = self._formatters()
        for module, names in OBSERVATION_TYPES.items():
            for name in names:  # each has a __repr__, which comes before its base's printer
                formatters["text/plain"].for_type_by_name(module, name, _print_text)
                formatters["text/html"].for_type_by_name(module, name, _html)
        display: Any = self._shell.display_formatter
        display.ipython_display_formatter.for_type_by_name(*_TURN_TYPE, self._show_turn)

    def _unregister_formatters(self) -> None:
        formatters = self._formatters()
        for module, names in OBSERVATION_TYPES.items():
            for name in names:
                formatters["text/plain"].pop(f"{module}.{name}", None)
                formatters["text/html"].pop(f"{module}.{name}", None)
        display: Any = self._shell.display_formatter
        display.ipython_display_formatter.pop(".".join(_TURN_TYPE), None)

    def _formatters(self) -> Any:
        assert self._shell.display_formatter is not None
        return self._shell.display_formatter.formatters

    def _show_turn(self, turn: AgentTurn) -> None:
        magics: Any = self._magics.load("oh_agent")
        magics.show(turn)

    def close(self) -> None:
        """Take everything out of the shell again and end the runtime."""
        if self._control is not None:
            self._control.close()
        self._unsubscribe()
        if self._runtime is not None:
            self.oh.stop_agent()
            self._runtime.submit(self._cells.close()).result(timeout=5)
        atexit.unregister(self._close_runtime)
        self._close_runtime()
        self._restore_logging()
        self._unregister_formatters()
        self._shell.configurables.remove(self._traits)  # type: ignore[arg-type]
        self._magics.close()
        self._shell.drop_by_id({"oh": self.oh})

    def _close_runtime(self) -> None:
        if self._runtime is not None:
            self._runtime.close()


def _what_is_set(shell: InteractiveShell) -> tuple[Any, Settings]:
    """The settings as they are now, and their traits; a ConfigError if one cannot be used."""
    try:
        traits = KernelTraits(parent=shell)
    except TraitError as error:
        raise ConfigError(str(error)) from None
    return traits, settings_from_traits(traits)


def _check_before_reload(shell: InteractiveShell) -> None:
    """Refuse settings before what works is taken away for them (ConfigError)."""
    try:
        _, settings = _what_is_set(shell)
        if not _can_start_later(settings):
            from oh_jupyter.runtime.runtime import setting_faults
            from oh_jupyter.storage.registry import make_file_store

            for _, problem in setting_faults(settings):
                raise problem
            make_file_store(replace(settings, file_store_web_hook_url=None))
    except (OhJupyterError, OSError) as error:
        raise ConfigError(
            f"{error}. Nothing was reloaded: oh and the magics stay as they were"
        ) from None


def _is_reload() -> bool:
    """Whether this unloading is the first half of %reload_ext, which IPython does not tell."""
    callers = (frame.f_code.co_name for frame, _ in traceback.walk_stack(None))
    return "reload_extension" in callers


def _can_start_later(settings: Settings) -> bool:
    """Whether a runtime of these settings has nothing to refuse, and nothing left to do."""
    default = Settings()
    plain = all(getattr(settings, name) == getattr(default, name) for name in _CHECKED_SETTINGS)
    if not plain or settings.file_store not in ("local", "memory"):
        return False
    folders = [settings.workspace_dir, settings.file_store_path or "~"]
    return all(_is_writable(Path(folder or ".").expanduser()) for folder in folders)


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder, or a folder where there is none yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _print_text(observation: Observation, printer: Any, cycle: bool) -> None:
    from oh_jupyter.kernel.display.observations import shown_text

    printer.text(shown_text(observation))


def _html(observation: Observation) -> str:
    from oh_jupyter.kernel.display.observations import observation_html

    return observation_html(observation)


def _kernel_id(kernel: Any) -> str:
    """The server's id of a kernel, by which it names the connection file."""
    file = str(getattr(kernel.parent, "connection_file", ""))
    return Path(file).stem.removeprefix("kernel-")


def load(shell: InteractiveShell) -> LoadedExtension:
    """Load oh_jupyter into a shell, once; an OhJupyterError if a setting cannot be used."""
    loaded: LoadedExtension | None = getattr(shell, _ATTRIBUTE, None)
    if loaded is None:
        loaded = LoadedExtension(shell)
        setattr(shell, _ATTRIBUTE, loaded)
    return loaded


def loaded() -> LoadedExtension | None:
    """What is loaded into the shell of this process, if it is a kernel that has loaded it."""
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), _ATTRIBUTE, None)


def unload(shell: InteractiveShell) -> None:
    """Take oh_jupyter out of a shell again; a ConfigError where a reload would fail."""
    loaded: LoadedExtension | None = getattr(shell, _ATTRIBUTE, None)
    if loaded is not None:
        if _is_reload():
            _check_before_reload(shell)
        delattr(shell, _ATTRIBUTE)
        loaded.close()
