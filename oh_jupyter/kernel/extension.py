"""Loading into a shell, and unloading without a trace."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.events import OBSERVATIONS, Event, Observation
from oh_jupyter.kernel.agent_context import agent_context, find_tool_server
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.cells.shell_cells import ShellCells
from oh_jupyter.kernel.control import Broadcast, ControlHandler
from oh_jupyter.kernel.magics import MAGICS
from oh_jupyter.logs import log_json_lines
from oh_jupyter.plugins import JupyterPlugin
from oh_jupyter.runtime import Runtime
from oh_jupyter.traits import KernelTraits, settings_from_traits

__all__ = [
    "LoadedExtension",
    "load",
    "loaded",
    "register_formatters",
    "unload",
    "unregister_formatters",
]


def register_formatters(shell: InteractiveShell) -> None:
    """Teach a shell to show Observations, of whatever type."""
    formatters = _formatters(shell)
    for kind in OBSERVATIONS.values():  # each has a __repr__, which comes before its base's printer
        formatters["text/plain"].for_type(kind, _print_text)
        formatters["text/html"].for_type(kind, _html)


def unregister_formatters(shell: InteractiveShell) -> None:
    """Make a shell forget what it was taught."""
    formatters = _formatters(shell)
    for kind in OBSERVATIONS.values():
        formatters["text/plain"].pop(kind, None)
        formatters["text/html"].pop(kind, None)


def _formatters(shell: InteractiveShell) -> Any:
    assert shell.display_formatter is not None
    return shell.display_formatter.formatters


def _print_text(observation: Observation, printer: Any, cycle: bool) -> None:
    from oh_jupyter.kernel.display.observations import shown_text

    printer.text(shown_text(observation))


def _html(observation: Observation) -> str:
    from oh_jupyter.kernel.display.observations import observation_html

    return observation_html(observation)


_ATTRIBUTE = "_oh_jupyter"


class LoadedExtension:
    """What ``%load_ext oh_jupyter`` put into a shell: the runtime, and ``oh``."""

    def __init__(self, shell: InteractiveShell) -> None:
        """Start a runtime; on an OhJupyterError the shell is unchanged."""
        self._shell = shell
        self._traits = KernelTraits(parent=shell)
        self._cells = ShellCells(shell)
        settings = settings_from_traits(self._traits)
        plugin = JupyterPlugin(self._cells, output_limit=settings.cell_output_limit)
        self.runtime = Runtime(settings, {plugin.name: plugin})
        self._restore_logging: Callable[[], None] = lambda: None
        kernel: Any = getattr(shell, "kernel", None)
        self.oh = Oh(
            self.runtime,
            lambda: self._cells.is_agents,
            lambda: None if kernel is None else find_tool_server(_kernel_id(kernel)),
            partial(agent_context, shell),
        )
        self._control: ControlHandler | None = None
        self._unsubscribe: Any = None
        if kernel is not None:
            secrets = partial(getattr, self.runtime.events, "secrets")
            self._restore_logging = log_json_lines(secrets, {"kernel_id": _kernel_id(kernel)})
            self._control = ControlHandler(kernel, self.runtime)
            broadcast = Broadcast(kernel, self.runtime.generation)
            self.runtime.executor.confirmations.on_decision(broadcast.send_decision)
            self._unsubscribe = self.runtime.events.subscribe(
                lambda event: broadcast.send(_wire(event))
            )
        shell.configurables.append(self._traits)  # type: ignore[arg-type]
        self._magics = [magics(shell, self.oh) for magics in MAGICS]
        for magics in self._magics:
            shell.register_magics(magics)
        shell.push({"oh": self.oh}, interactive=False)
        register_formatters(shell)
        atexit.register(self.runtime.close)

    def close(self) -> None:
        """Take everything out of the shell again and end the runtime."""
        atexit.unregister(self.runtime.close)
        if self._control is not None:
            self._control.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
        self.oh.stop_agent()
        self.runtime.submit(self._cells.close()).result(timeout=5)
        self.runtime.close()
        self._restore_logging()
        unregister_formatters(self._shell)
        self._shell.configurables.remove(self._traits)  # type: ignore[arg-type]
        for magics in self._magics:
            magics.close()
            for kind, names in magics.magics.items():
                for name in names:
                    self._shell.magics_manager.magics[kind].pop(name, None)
        self._shell.drop_by_id({"oh": self.oh})


def _kernel_id(kernel: Any) -> str:
    """The server's id of a kernel, by which it names the connection file."""
    file = str(getattr(kernel.parent, "connection_file", ""))
    return Path(file).stem.removeprefix("kernel-")


def _wire(event: Event) -> dict[str, Any]:
    from oh_jupyter.events.wire import to_wire

    return to_wire(event)


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
    """Take oh_jupyter out of a shell again."""
    loaded: LoadedExtension | None = getattr(shell, _ATTRIBUTE, None)
    if loaded is not None:
        delattr(shell, _ATTRIBUTE)
        loaded.close()
