"""Clients of agents: their configuration files, and the format of an entry in these."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oh_jupyter.connect.entries import EntryLocation
from oh_jupyter.server.running import RunningServer

NAME = "oh-jupyter"
"""Name of our server in every client; Gemini's policies do not support "_"."""

MAX_CALL_SECONDS = 3600
"""Timeout for clients that would otherwise abort a long cell after a minute or two."""


@dataclass(frozen=True)
class Target:
    """Target of a client: a program with its arguments, a server, or an address with OAuth."""

    program: tuple[str, ...] = ("oh-jupyter", "mcp")
    environment: Mapping[str, str] = field(default_factory=dict)  # beyond what clients pass on
    server: RunningServer | None = None
    oauth_address: str = ""


@dataclass(frozen=True)
class Client:
    """A client of agents, with the paths of its user and project files, "" for none."""

    title: str
    location: EntryLocation
    user: str
    project: str
    next_step: str
    # Keys of the command, its environment, an address and its headers; then the key of the
    # transport with its two values.
    names: tuple[str, str, str, str] = ("command", "env", "url", "headers")
    kinds: tuple[str, str, str] | tuple[()] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    directory: Callable[[], str | Path | None] = lambda: None  # instead of the home
    finish: Callable[[dict[str, Any]], dict[str, Any]] = dict
    # What stops it from asking before each call: in the entry, or as a rule in other files.
    trust: Mapping[str, Any] = field(default_factory=dict)
    rule: tuple[EntryLocation, Callable[[], Path], str] | None = None

    def rule_file(self, scope: str, directory: Path) -> Path | None:
        """Return the file of the rule of a scope, or None."""
        if self.rule is None:
            return None
        _, user, project = self.rule
        return user() if scope == "user" else directory / project

    def file(self, scope: str, directory: Path) -> Path | None:
        """Return the file of a scope, "user" or "project" in a directory, or None."""
        if scope == "user":
            return Path(self.directory() or Path.home(), self.user) if self.user else None
        return directory / self.project if self.project else None

    def entry(self, target: Target, trusted: bool = False) -> dict[str, Any]:
        """Return the entry for a target; a trusted one is used without asking."""
        command, environment, url, headers = self.names
        if target.oauth_address:
            parts: dict[str, Any] = {url: target.oauth_address}
        elif target.server:
            parts = {
                url: f"{target.server.url}/mcp",
                headers: target.server.headers,
            }
        else:
            program, *arguments = target.program
            parts = {command: program, "args": arguments, environment: dict(target.environment)}
        entry = {name: part for name, part in parts.items() if part}
        if self.kinds:
            key, stdio, http = self.kinds
            entry = {key: http if url in entry else stdio, **entry}
        return self.finish({**entry, **self.extra, **(self.trust if trusted else {})})


def _variable(name: str) -> Callable[[], str | None]:
    return lambda: os.environ.get(name)


def _settings_directory() -> Path:
    """Return the directory of desktop programs' user settings."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def _claude_settings() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude", "settings.json")


def _goose_directory() -> Path:
    if sys.platform == "win32":
        return _settings_directory() / "Block" / "goose" / "config"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "goose")


def _acp_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """Convert an entry to ACP's format: lists of named values, and no omitted part."""
    key = "headers" if "url" in entry else "env"
    pairs = [{"name": name, "value": value} for name, value in entry.get(key, {}).items()]
    kind = {"type": "http"} if "url" in entry else {}
    return {"name": NAME, **({} if kind else {"args": []}), **entry, **kind, key: pairs}


_JSON = EntryLocation(".json", ("mcpServers",), NAME)
_TYPED = ("type", "stdio", "http")

CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        "Claude Code",
        _JSON,
        ".claude.json",
        ".mcp.json",
        "start claude, or type /mcp in a running one to connect",
        kinds=_TYPED,
        directory=_variable("CLAUDE_CONFIG_DIR"),
        rule=(
            EntryLocation(".json", ("permissions", "allow"), f"mcp__{NAME}", listed=True),
            _claude_settings,
            ".claude/settings.local.json",
        ),
    ),
    "codex": Client(
        "Codex",
        EntryLocation(".toml", ("mcp_servers",), NAME),
        "config.toml",
        ".codex/config.toml",
        "start codex (restart it if it runs); /mcp lists the tools",
        names=("command", "env", "url", "http_headers"),
        extra={"tool_timeout_sec": MAX_CALL_SECONDS},
        directory=lambda: os.environ.get("CODEX_HOME") or Path.home() / ".codex",
        trust={"default_tools_approval_mode": "approve"},
    ),
    "gemini": Client(
        "Gemini CLI",
        _JSON,
        ".gemini/settings.json",
        ".gemini/settings.json",
        "start gemini (restart it if it runs); /mcp lists the tools",
        names=("command", "env", "httpUrl", "headers"),
        extra={"timeout": MAX_CALL_SECONDS * 1000},
        directory=_variable("GEMINI_CLI_HOME"),
        trust={"trust": True},
    ),
    "goose": Client(
        "goose",
        EntryLocation(".yaml", ("extensions",), NAME),
        "config.yaml",
        "",
        "start goose session (restart it if it runs)",
        names=("cmd", "envs", "uri", "headers"),
        kinds=("type", "stdio", "streamable_http"),
        extra={
            "enabled": True,
            "name": NAME,
            "description": "The Jupyter notebook that is open, its variables, shell and browser",
            "timeout": MAX_CALL_SECONDS,
        },
        directory=_goose_directory,
    ),
    "cursor": Client(
        "Cursor",
        _JSON,
        ".cursor/mcp.json",
        ".cursor/mcp.json",
        f"switch {NAME} on in Cursor's settings, under MCP, and open an agent's chat",
    ),
    "vscode": Client(
        "VS Code",
        EntryLocation(".json", ("servers",), NAME),
        "Code/User/mcp.json",
        ".vscode/mcp.json",
        f"run the command MCP: List Servers, start {NAME}, and open an agent's chat",
        kinds=_TYPED,
        directory=_settings_directory,
    ),
    "jupyter-ai": Client(
        "Jupyter AI",
        EntryLocation(".json", ("mcp_servers",), NAME, listed=True),
        "",
        ".jupyter/mcp_settings.json",
        "open a new chat of a persona in this directory, or below it",
        finish=_acp_entry,
    ),
    "openhands": Client(
        "OpenHands",
        _JSON,
        ".openhands/mcp.json",
        "",
        "start openhands (restart it if it runs); /mcp lists the tools",
        kinds=("transport", "stdio", "http"),
    ),
}
