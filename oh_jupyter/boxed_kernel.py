"""A whole kernel in a sandbox: a provisioner for Jupyter, and the kernelspec that uses it.

Cells, the shell, the editor and agents of such a kernel share one box. The kernel talks to Jupyter
by Unix sockets, because a box without network has a loopback interface of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Enum, List, Unicode

from oh_jupyter.background import LoopThread, threads_have_ended
from oh_jupyter.config import BOXED_KERNEL_VARIABLE, load_settings, state_home
from oh_jupyter.errors import ConfigError, SandboxError
from oh_jupyter.policy import VARIABLE as POLICY_VARIABLE
from oh_jupyter.policy import kernel_network
from oh_jupyter.sandbox import Box, allowed_environment, find_engine, make_profile
from oh_jupyter.sandbox.hosts import ListedHosts, parse_hosts
from oh_jupyter.sandbox.mounts import homes, make_folders, own_folders, settings_files
from oh_jupyter.sandbox.profile import Network
from oh_jupyter.sandbox.proxy import Proxy
from oh_jupyter.trust import is_trusted

__all__ = ["SandboxProvisioner", "install_kernelspec"]

PROVISIONER = "oh-jupyter-sandbox"
KERNEL_NAME = "python3-sandboxed"
DISPLAY_NAME = "Python 3 (sandboxed)"
NETWORKS: dict[str, Network] = {"none": "none", "listed": "proxy", "host": "host"}
"""Networks of boxed kernels, with those of their boxes."""

INHERITED = ("JPY_SESSION_NAME", "MPLBACKEND", POLICY_VARIABLE)
"""Variables that the kernel gets besides those of every box."""

MAX_STARTS = 5
"""Maximum number of attempts, because paths may vanish while a box is being set up."""

REPORT_START = 'echo > "/dev/fd/$0"; exec "$@"'
"""Script that runs in the box, which exists by then, and becomes the kernel."""

PERSONS_STARTUP = ("ipython_config.py", "ipython_kernel_config.py", "startup")
"""Files of a person's IPython profile that a boxed kernel reads as well."""


class KernelProxy:
    """The proxy of a kernel, on a thread of its own: Jupyter's loop stands still in scripts."""

    def __init__(self, access: ListedHosts) -> None:
        self._thread = LoopThread("oh-sandbox-proxy")
        self._proxy = Proxy(access)

    async def listen(self, path: str) -> None:
        """Listen on a Unix socket."""
        await asyncio.wrap_future(self._thread.submit(self._proxy.listen(path)))

    def close(self) -> None:
        """End all connections and the thread."""
        if threads_have_ended():
            return
        self._thread.submit(self._proxy.close()).result()
        self._thread.stop()


class SandboxProvisioner(LocalProvisioner):
    """Starts a kernel in a sandbox, or not at all.

    The directory of the notebook is writable, everything else is read-only or hidden; see
    ``docs/how-to/sandbox.md``.

    Attributes:
        network: The kernel's network: ``none``, ``listed`` or ``host``.
        hosts: Hosts that ``listed`` kernels may reach, besides those of ``sandbox_hosts``.
        writable: More writable paths, relative to the notebook's directory.
        hidden: More hidden paths.
    """

    network = Enum(tuple(NETWORKS), default_value="none", help="Network of the kernel.").tag(
        config=True
    )
    hosts = List(Unicode(), help="Hosts that a kernel with a listed network may reach.").tag(
        config=True
    )
    writable = List(Unicode(), help="More writable paths.").tag(config=True)
    hidden = List(Unicode(), help="More hidden paths.").tag(config=True)

    _box: Box | None = None
    _proxy: KernelProxy | None = None
    _sockets = ""
    workspace = ""
    """Directory that the box may change, "" before it starts."""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Make the box, and the command line of the kernel in it.

        Raises:
            SandboxError: No sandbox can be made here; the kernel does not start.
        """
        workspace = os.path.realpath(kwargs.get("cwd") or os.getcwd())
        state = state_home() / "sandboxed" / sha256(workspace.encode()).hexdigest()[:16]
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        _copy_profile(state / "ipython")
        # A restart keeps the box: clients stay connected to its sockets.
        self._sockets = self._sockets or tempfile.mkdtemp(prefix="oh_kernel_")
        manager: Any = self.parent
        manager.transport, manager.cache_ports = "ipc", False
        manager.ip = os.path.join(self._sockets, "k")
        prepared: dict[str, Any] = await super().pre_launch(**kwargs)
        try:
            self._box = self._box or self._make_box(workspace, state)
            if self._network == "listed" and self._proxy is None:
                await self._start_proxy(self._box.proxy_socket)
        except BaseException:
            self._remove()
            raise
        command, environment = prepared["cmd"], prepared["env"]
        prepared["env"] = _environment(environment, state, self._network)
        command = self._with_own_connection_file(command)
        # In the box, the kernel's parent is always the first process.
        prepared["cmd"] = ["/usr/bin/env", "JPY_PARENT_PID=1", *command]
        self.workspace = workspace
        return prepared

    @property
    def _network(self) -> str:
        """The kernel's network, as far as an administrator's policy allows it."""
        return kernel_network(load_settings(is_trusted=is_trusted).policy or {}, str(self.network))

    def _with_own_connection_file(self, command: list[str]) -> list[str]:
        """Return the command with a copy of the connection file, beside the kernel's sockets.

        A kernel with encryption writes the file again, and must not change Jupyter's own.
        """
        original = str(cast(Any, self.parent).connection_file)
        own = os.path.join(self._sockets, os.path.basename(original))
        shutil.copy(original, own)  # with its mode, since it has the keys
        return [own if part == original else part for part in command]

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Start the kernel in its box.

        Raises:
            SandboxError: The box could not be set up.
        """
        box = self._box
        assert box is not None, "pre_launch has made it"
        for _ in range(MAX_STARTS):
            started, report = os.pipe()
            try:
                command = ["/bin/sh", "-c", REPORT_START, str(report), *cmd]
                command, _ = box.enclose(command, self.workspace, [], nested=True)
                info = await super().launch_kernel(command, pass_fds=(report,), **kwargs)
                os.close(report)
                report = -1
                if await asyncio.to_thread(os.read, started, 1):
                    return info
                await self.wait()
            finally:
                for descriptor in (started, report):
                    if descriptor >= 0:
                        os.close(descriptor)
        self._remove()
        raise SandboxError(
            "The kernel was not started, because its sandbox could not be set up; the server's log "
            "has the reason. Try again."
        )

    async def post_launch(self, **kwargs: Any) -> None:
        """Limit the kernel's processes."""
        await super().post_launch(**kwargs)
        if self._box is not None and self.pid is not None:
            self._box.limit_processes(self.pid)

    def _make_box(self, workspace: str, state: Path) -> Box:
        settings = load_settings(is_trusted=is_trusted)
        engine = find_engine(None)
        if engine.program is None:
            raise SandboxError(f"The kernel was not started: {engine.sentence}")
        make_folders(settings)
        profile = make_profile(
            workspace,
            homes=homes(None),
            own_folders=own_folders(settings),
            writable=[*self.writable, str(state), self._sockets],
            hidden=[*settings.sandbox_hidden, *self.hidden],
            visible=settings.sandbox_visible,
            protected=settings_files(),
            network=NETWORKS[self._network],
            max_processes=settings.sandbox_max_processes,
        )
        # An editable install may be below a directory that boxes replace, such as /tmp.
        package = os.path.dirname(os.path.abspath(__file__))
        profile = replace(profile, visible=(*profile.visible, package))
        return Box(profile, engine)

    async def _start_proxy(self, path: str) -> None:
        hosts = [*load_settings(is_trusted=is_trusted).sandbox_hosts, *self.hosts]
        self._proxy = KernelProxy(ListedHosts(hosts, f"kernel {self.kernel_id}"))
        await self._proxy.listen(path)

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the box, unless the kernel restarts."""
        await super().cleanup(restart)
        if not restart:
            self._remove()

    def _remove(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._box is not None:
            self._box.close()
            self._box = None
        shutil.rmtree(self._sockets, ignore_errors=True)
        self._sockets = ""


def _environment(inherited: dict[str, str], state: Path, network: str) -> dict[str, str]:
    """Return the kernel's environment: an allow-list, and places that it can write."""
    own = {name: inherited[name] for name in INHERITED if name in inherited}
    return {
        **allowed_environment(inherited),
        **own,
        BOXED_KERNEL_VARIABLE: network,
        "XDG_STATE_HOME": str(state),
        "XDG_CACHE_HOME": "/tmp/cache",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "FILE_STORE_PATH": str(state / "store"),
        "IPYTHONDIR": str(state / "ipython"),
    }


def _copy_profile(target: Path) -> None:
    """Copy what a person configured in IPython: a box cannot use a directory it cannot write."""
    source = Path(os.environ.get("IPYTHONDIR") or "~/.ipython").expanduser() / "profile_default"
    profile = target / "profile_default"
    profile.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in PERSONS_STARTUP:
        if (source / name).is_dir():
            shutil.copytree(source / name, profile / name, dirs_exist_ok=True)
        elif (source / name).is_file():
            shutil.copyfile(source / name, profile / name)


def install_kernelspec(
    *, network: str = "none", hosts: Sequence[str] = (), prefix: str | None = None
) -> str:
    """Install the kernelspec of sandboxed kernels that run this Python.

    Args:
        network: Network of the kernels: ``none``, ``listed`` or ``host``.
        hosts: Hosts and presets that ``listed`` kernels may reach, as in ``sandbox_hosts``.
        prefix: Directory to install to, such as ``sys.prefix``; None for the user's directory.

    Returns:
        The directory of the kernelspec.

    Raises:
        ConfigError: It cannot be written, or a host is invalid.
    """
    parse_hosts(tuple(hosts))
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": DISPLAY_NAME,
        "language": "python",
        # A signal would end the box as well.
        "interrupt_mode": "message",
        "metadata": {
            "debugger": True,
            "supported_encryption": ["curve"],
            "kernel_provisioner": {
                "provisioner_name": PROVISIONER,
                "config": {"network": network, "hosts": list(hosts)},
            },
        },
    }
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.json").write_text(json.dumps(spec, indent=1))
        try:
            installed = KernelSpecManager().install_kernel_spec(
                folder, KERNEL_NAME, user=prefix is None, prefix=prefix
            )
        except OSError as error:
            raise ConfigError(f"The kernelspec cannot be written: {error}") from None
    return str(installed)


def used_kernelspec() -> str:
    """Return the directory of the kernelspec that Jupyter uses, of all that are installed."""
    return str(KernelSpecManager().get_kernel_spec(KERNEL_NAME).resource_dir)
