"""The clients: where each keeps its configuration, and what it calls the parts of an entry."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oh_jupyter.connect.entries import Place
from oh_jupyter.server.running import RunningServer

__all__ = ["CLIENTS", "NAME", "Client", "Connection"]

NAME = "oh-jupyter"
"""What our server is called in every client; Gemini's policies cannot name one with a "_"."""

LONGEST_CALL_SECONDS = 3600
"""For clients that would otherwise give a long cell up after a minute or two."""


@dataclass(frozen=True)
class Connection:
    """How a client reaches us.

    Attributes:
        program: A program to start, with its arguments.
        environment: Variables that it needs, beside those that every client passes on.
        server: An address to connect to instead.
    """

    program: tuple[str, ...] = ("oh-jupyter", "mcp")
    environment: Mapping[str, str] = field(default_factory=dict)
    server: RunningServer | None = None

    @property
    def url(self) -> str:
        """The address of MCP on the server; "" if a program is started."""
        return f"{self.server.url}/mcp" if self.server else ""

    def described(self, command: str, environment: str, url: str, headers: str) -> dict[str, Any]:
        """The parts of it that there are, under the names that a client has for them."""
        if self.server:
            parts = {url: self.url, headers: self.server.headers}
        else:
            program, *arguments = self.program
            parts = {command: program, "args": arguments, environment: dict(self.environment)}
        return {name: part for name, part in parts.items() if part}


@dataclass(frozen=True)
class Client:
    """A program that agents run in.

    Attributes:
        title: Its name for people.
        place: Where our entry is in its file.
        entry: Makes an entry of a connection.
        user: Finds the file for all that a person does; None if there is none.
        project: Finds the file of the project in a directory; None if there is none.
        next_step: What to do there, once the file is written.
    """

    title: str
    place: Place
    entry: Callable[[Connection], dict[str, Any]]
    user: Callable[[], Path] | None
    project: Callable[[Path], Path] | None
    next_step: str


def _home(*below: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*below)


def _in_project(*below: str) -> Callable[[Path], Path]:
    return lambda directory: directory.joinpath(*below)


def _claude_user_file() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home()) / ".claude.json"


def _codex_user_file() -> Path:
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex") / "config.toml"


def _gemini_user_file() -> Path:
    return Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini" / "settings.json"


def _goose_user_file() -> Path:
    if sys.platform == "win32":
        return _application_data() / "Block" / "goose" / "config" / "config.yaml"
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "goose" / "config.yaml"


def _vscode_user_file() -> Path:
    if sys.platform == "win32":
        base = _application_data()
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "Code" / "User" / "mcp.json"


def _application_data() -> Path:
    return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")


def _plain(to: Connection) -> dict[str, Any]:
    return to.described("command", "env", "url", "headers")


def _typed(to: Connection) -> dict[str, Any]:
    return {"type": "http" if to.server else "stdio", **_plain(to)}


def _codex(to: Connection) -> dict[str, Any]:
    described = to.described("command", "env", "url", "http_headers")
    return {**described, "tool_timeout_sec": LONGEST_CALL_SECONDS}


def _gemini(to: Connection) -> dict[str, Any]:
    described = to.described("command", "env", "httpUrl", "headers")
    return {**described, "timeout": LONGEST_CALL_SECONDS * 1000}


def _goose(to: Connection) -> dict[str, Any]:
    return {
        "enabled": True,
        "type": "streamable_http" if to.server else "stdio",
        "name": NAME,
        "description": "The Jupyter notebook that is open, its variables, shell and browser",
        **to.described("cmd", "envs", "uri", "headers"),
        "timeout": LONGEST_CALL_SECONDS,
    }


def _jupyter_ai(to: Connection) -> dict[str, Any]:
    """An entry as ACP describes servers: lists of what has a name, and no part left out."""
    described = {"name": NAME, **_plain(to)}
    if to.server:
        return {**described, "type": "http", "headers": _named(to.server.headers)}
    return {"args": [], **described, "env": _named(to.environment)}


def _named(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _openhands(to: Connection) -> dict[str, Any]:
    return {"transport": "http" if to.server else "stdio", **_plain(to)}


CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        title="Claude Code",
        place=Place(".json", ("mcpServers",), NAME),
        entry=_typed,
        user=_claude_user_file,
        project=_in_project(".mcp.json"),
        next_step="start claude, or type /mcp in one that runs to connect",
    ),
    "codex": Client(
        title="Codex",
        place=Place(".toml", ("mcp_servers",), NAME),
        entry=_codex,
        user=_codex_user_file,
        project=_in_project(".codex", "config.toml"),
        next_step="start codex (anew, if it runs); /mcp lists the tools",
    ),
    "gemini": Client(
        title="Gemini CLI",
        place=Place(".json", ("mcpServers",), NAME),
        entry=_gemini,
        user=_gemini_user_file,
        project=_in_project(".gemini", "settings.json"),
        next_step="start gemini (anew, if it runs); /mcp lists the tools",
    ),
    "goose": Client(
        title="goose",
        place=Place(".yaml", ("extensions",), NAME),
        entry=_goose,
        user=_goose_user_file,
        project=None,
        next_step="start goose session (anew, if it runs)",
    ),
    "cursor": Client(
        title="Cursor",
        place=Place(".json", ("mcpServers",), NAME),
        entry=_plain,
        user=_home(".cursor", "mcp.json"),
        project=_in_project(".cursor", "mcp.json"),
        next_step=f"switch {NAME} on in Cursor's settings, under MCP, and open an agent's chat",
    ),
    "vscode": Client(
        title="VS Code",
        place=Place(".json", ("servers",), NAME),
        entry=_typed,
        user=_vscode_user_file,
        project=_in_project(".vscode", "mcp.json"),
        next_step=f"run the command MCP: List Servers, start {NAME}, and open an agent's chat",
    ),
    "jupyter-ai": Client(
        title="Jupyter AI",
        place=Place(".json", ("mcp_servers",), NAME, listed=True),
        entry=_jupyter_ai,
        user=None,
        project=_in_project(".jupyter", "mcp_settings.json"),
        next_step="open a new chat of a persona in this directory, or below it",
    ),
    "openhands": Client(
        title="OpenHands",
        place=Place(".json", ("mcpServers",), NAME),
        entry=_openhands,
        user=_home(".openhands", "mcp.json"),
        project=None,
        next_step="start openhands (anew, if it runs); /mcp lists the tools",
    ),
}
