"""VS Code in the browser: ``openvscode-server`` or ``code-server`` behind jupyter-server-proxy."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode

from oh_jupyter.errors import PluginError
from oh_jupyter.installed import find_program
from oh_jupyter.plugins.base import Plugin, PluginRequirement
from oh_jupyter.process import Child, spawn

PROGRAMS = ("openvscode-server", "code-server")
"""Names under which the editor is looked for on the PATH, the first one first."""

CONNECT_RETRY_SECONDS = 0.1
"""Seconds between two attempts to connect while it starts: it has no way to tell us."""

REMOVED_VARIABLES = {"HASHED_PASSWORD", "PASSWORD", "VSCODE_IPC_HOOK_CLI", "VSCODE_OPTIONS"}
"""Variables that would change the password, or hand the folder to a VS Code that runs already."""

WELCOME_TEXT = "The password is the token that GET oh_jupyter/vscode names"
"""Code-server itself speaks of a configuration file, which is not the person's."""

MAX_SOCKET_PATH_BYTES = 100
"""Bytes of a socket's path that all systems allow."""

INSTALL_HINT = (
    "Install code-server (npm install -g code-server, or https://coder.com/docs/code-server) or "
    "openvscode-server (https://github.com/gitpod-io/openvscode-server/releases), and put it on "
    "the PATH or name it by the setting vscode_path"
)


@dataclass(frozen=True)
class VSCodeRequirement(PluginRequirement):
    """Requirement of VS Code in the browser."""

    name: str = "vscode"


class VSCodePlugin(Plugin):
    """VS Code server and its address.

    Attributes:
        vscode_port: Port on loopback; None while it is stopped.
        vscode_connection_token: Token that a browser must send; None while it is stopped.
        workspace_dir: Folder that it opens.
    """

    name: ClassVar[str] = "vscode"

    def __init__(
        self,
        workspace_dir: str | None = None,
        *,
        path: str | None = None,
        base_url: str | None = None,
    ) -> None:
        """Make the plugin.

        Args:
            workspace_dir: Folder to open; the working directory by default.
            path: The program; searched on the PATH by default.
            base_url: Path of the Jupyter server for browsers, such as ``/user/ann/``; by default
                JupyterHub's prefix, or ``/``.
        """
        self.workspace_dir = workspace_dir or os.getcwd()
        self.vscode_port: int | None = None
        self.vscode_connection_token: str | None = None
        self._path = path
        self._base_url = base_url or os.environ.get("JUPYTERHUB_SERVICE_PREFIX") or "/"
        self._child: Child | None = None
        self._temp_dir: str | None = None
        self._is_code_server = False

    async def initialize(self, username: str) -> None:
        """Start the editor and wait until it responds; raise PluginError if it fails."""
        program = _find_program(self._path)
        port = _port()
        token = str(uuid.uuid4())
        # openvscode-server needs its own path; code-server works under any.
        self._is_code_server = os.path.basename(program).startswith("code-server")
        self._temp_dir = tempfile.mkdtemp(prefix="oh_jupyter-vscode-")
        try:
            await asyncio.to_thread(self._start, program, port, token)
            await self._wait_until_ready(port)
        except BaseException:
            await self.close()
            raise
        self.vscode_port = port
        self.vscode_connection_token = token

    def _start(self, program: str, port: int, token: str) -> None:
        assert self._temp_dir is not None
        # In a file, since all users of the machine can read command lines.
        if self._is_code_server:
            # Its own configuration, since the person's may contain another password.
            secret = self._secret_file("config.yaml", f"auth: password\npassword: {token}\n")
            arguments = [
                "--config", secret, "--bind-addr", f"127.0.0.1:{port}",
                "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust",
                "--welcome-text", WELCOME_TEXT, *self._socket_arguments(), self.workspace_dir,
            ]  # fmt: skip
        else:
            arguments = [
                "--host", "127.0.0.1", "--port", str(port),
                "--connection-token-file", self._secret_file("token", token),
                "--server-base-path", self._base_path(port),
                "--telemetry-level", "off", "--disable-workspace-trust",
            ]  # fmt: skip
        with open(self._log_path(), "wb") as log:
            self._child = spawn(
                [program, *arguments],
                cwd=self.workspace_dir,
                env={
                    name: value
                    for name, value in os.environ.items()
                    if name not in REMOVED_VARIABLES
                },
                stdout=log,
                stderr=log,
                remove_when_orphaned=self._temp_dir,
            )

    def _secret_file(self, name: str, text: str) -> str:
        path = Path(str(self._temp_dir), name)
        path.touch(mode=0o600)
        path.write_text(text)
        return str(path)

    def _socket_arguments(self) -> list[str]:
        """Return arguments for code-server's own terminal socket, since kernels would share one."""
        path = os.path.join(str(self._temp_dir), "session.sock")
        return ["--session-socket", path] if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES else []

    async def _wait_until_ready(self, port: int) -> None:
        """Connect until the server accepts; the plugin set limits the time."""
        assert self._child is not None
        while True:
            if self._child.poll() is not None:
                raise PluginError(
                    f"VS Code ended with status {self._child.returncode} while it was starting: "
                    f"{self._log_tail() or 'it gave no reason'}"
                )
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(CONNECT_RETRY_SECONDS)
                continue
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            return

    def url(self) -> str | None:
        """Return the path for a browser, e.g. ``/proxy/8080/?folder=...``; None while stopped."""
        if self.vscode_port is None or self.vscode_connection_token is None:
            return None
        query = {"tkn": self.vscode_connection_token, "folder": self.workspace_dir}
        if self._is_code_server:
            del query["tkn"]  # it asks for the token as its password
        return f"{self._base_path(self.vscode_port)}/?{urlencode(query, quote_via=quote)}"

    def _base_path(self, port: int) -> str:
        kind = "proxy" if self._is_code_server else "proxy/absolute"
        return f"{self._base_url.rstrip('/')}/{kind}/{port}"

    def _log_path(self) -> Path:
        return Path(str(self._temp_dir), "log.txt")

    def _log_tail(self) -> str:
        text = self._log_path().read_text(encoding="utf-8", errors="replace")
        return " ".join(text.split("\n")[-6:]).strip()

    async def close(self) -> None:
        """End the editor and its processes."""
        self.vscode_port = self.vscode_connection_token = None
        child, self._child = self._child, None
        temp_dir, self._temp_dir = self._temp_dir, None
        # At interpreter exit pools accept no work, so this blocks.
        if child is not None:
            child.terminate()
        if temp_dir is not None:
            shutil.rmtree(temp_dir, ignore_errors=True)


def _find_program(path: str | None) -> str:
    if path is not None:
        program = find_program(os.path.expanduser(path))
        if program is None:
            raise PluginError(
                f"There is no program {path!r}, which vscode_path names. {INSTALL_HINT}"
            )
        return program
    for name in PROGRAMS:
        program = find_program(name)
        if program is not None:
            return program
    raise PluginError(f"Neither of {' and '.join(PROGRAMS)} is on the PATH. {INSTALL_HINT}")


def _port() -> int:
    """Return $VSCODE_PORT, as OpenHands sets it, or any free port."""
    wanted = os.environ.get("VSCODE_PORT", "")
    if wanted and not wanted.isdecimal():
        raise PluginError(f"VSCODE_PORT must be the number of a port, not {wanted!r}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(wanted or 0)))
        except (OSError, OverflowError) as error:
            raise PluginError(
                f"Port {wanted} of VSCODE_PORT cannot be used: {error}. Choose another, or unset "
                "the variable for any free one"
            ) from error
        return int(probe.getsockname()[1])
