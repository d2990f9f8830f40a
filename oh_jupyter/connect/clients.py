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

NAME = "oh-jupyter"
"""What our server is called in every client; Gemini's policies cannot name one with a "_"."""

MAX_CALL_SECONDS = 3600
"""For clients that would otherwise give a long cell up after a minute or two."""


@dataclass(frozen=True)
class Connection:
    """How a client reaches us: by a program with its arguments, or by a server's address."""

    program: tuple[str, ...] = ("oh-jupyter", "mcp")
    environment: Mapping[str, str] = field(default_factory=dict)  # beside what all clients pass on
    server: RunningServer | None = None


@dataclass(frozen=True)
class Client:
    """A program that agents run in, and its files: a person's and a project's, "" for none."""

    title: str
    place: Place
    user: str
    project: str
    next_step: str
    # What it calls the command, its environment, an address and that one's headers; then the key
    # that tells how to reach a server, and its two values.
    names: tuple[str, str, str, str] = ("command", "env", "url", "headers")
    kinds: tuple[str, str, str] | tuple[()] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    moved: Callable[[], str | Path | None] = lambda: None  # a directory instead of the home
    finish: Callable[[dict[str, Any]], dict[str, Any]] = dict
    # What keeps it from asking before each call: in the entry, or as a rule in files of its own.
    trust: Mapping[str, Any] = field(default_factory=dict)
    rule: tuple[Place, Callable[[], Path], str] | None = None

    def rule_file(self, scope: str, directory: Path) -> Path | None:
        """The file of the rule of a scope; None where the client has none."""
        if self.rule is None:
            return None
        _, user, project = self.rule
        return user() if scope == "user" else directory / project

    def file(self, scope: str, directory: Path) -> Path | None:
        """The file of a scope, "user" or "project" in a directory; None if there is none."""
        if scope == "user":
            return Path(self.moved() or Path.home(), self.user) if self.user else None
        return directory / self.project if self.project else None

    def entry(self, to: Connection, trusted: bool = False) -> dict[str, Any]:
        """What its file holds for a connection; a trusted one is used without asking."""
        command, environment, url, headers = self.names
        if to.server:
            parts: dict[str, Any] = {url: f"{to.server.url}/mcp", headers: to.server.headers}
        else:
            program, *arguments = to.program
            parts = {command: program, "args": arguments, environment: dict(to.environment)}
        described = {name: part for name, part in parts.items() if part}
        if self.kinds:
            key, started, reached = self.kinds
            described = {key: reached if to.server else started, **described}
        return self.finish({**described, **self.extra, **(self.trust if trusted else {})})


def _variable(name: str) -> Callable[[], str | None]:
    return lambda: os.environ.get(name)


def _settings_directory() -> Path:
    """Where programs of the desktop keep a person's settings."""
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


def _as_acp_does(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry as ACP describes servers: lists of what has a name, and no part left out."""
    key = "headers" if "url" in entry else "env"
    pairs = [{"name": name, "value": value} for name, value in entry.get(key, {}).items()]
    kind = {"type": "http"} if "url" in entry else {}
    return {"name": NAME, **({} if kind else {"args": []}), **entry, **kind, key: pairs}


_JSON = Place(".json", ("mcpServers",), NAME)
_TYPED = ("type", "stdio", "http")

CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        "Claude Code",
        _JSON,
        ".claude.json",
        ".mcp.json",
        "start claude, or type /mcp in one that runs to connect",
        kinds=_TYPED,
        moved=_variable("CLAUDE_CONFIG_DIR"),
        rule=(
            Place(".json", ("permissions", "allow"), f"mcp__{NAME}", listed=True),
            _claude_settings,
            ".claude/settings.local.json",
        ),
    ),
    "codex": Client(
        "Codex",
        Place(".toml", ("mcp_servers",), NAME),
        "config.toml",
        ".codex/config.toml",
        "start codex (anew, if it runs); /mcp lists the tools",
        names=("command", "env", "url", "http_headers"),
        extra={"tool_timeout_sec": MAX_CALL_SECONDS},
        moved=lambda: os.environ.get("CODEX_HOME") or Path.home() / ".codex",
        trust={"default_tools_approval_mode": "approve"},
    ),
    "gemini": Client(
        "Gemini CLI",
        _JSON,
        ".gemini/settings.json",
        ".gemini/settings.json",
        "start gemini (anew, if it runs); /mcp lists the tools",
        names=("command", "env", "httpUrl", "headers"),
        extra={"timeout": MAX_CALL_SECONDS * 1000},
        moved=_variable("GEMINI_CLI_HOME"),
        trust={"trust": True},
    ),
    "goose": Client(
        "goose",
        Place(".yaml", ("extensions",), NAME),
        "config.yaml",
        "",
        "start goose session (anew, if it runs)",
        names=("cmd", "envs", "uri", "headers"),
        kinds=("type", "stdio", "streamable_http"),
        extra={
            "enabled": True,
            "name": NAME,
            "description": "The Jupyter notebook that is open, its variables, shell and browser",
            "timeout": MAX_CALL_SECONDS,
        },
        moved=_goose_directory,
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
        Place(".json", ("servers",), NAME),
        "Code/User/mcp.json",
        ".vscode/mcp.json",
        f"run the command MCP: List Servers, start {NAME}, and open an agent's chat",
        kinds=_TYPED,
        moved=_settings_directory,
    ),
    "jupyter-ai": Client(
        "Jupyter AI",
        Place(".json", ("mcp_servers",), NAME, listed=True),
        "",
        ".jupyter/mcp_settings.json",
        "open a new chat of a persona in this directory, or below it",
        finish=_as_acp_does,
    ),
    "openhands": Client(
        "OpenHands",
        _JSON,
        ".openhands/mcp.json",
        "",
        "start openhands (anew, if it runs); /mcp lists the tools",
        kinds=("transport", "stdio", "http"),
    ),
}
