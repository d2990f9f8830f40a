"""Configuration of MCP servers, in the format of OpenHands' configuration and protocol."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from oh_jupyter.errors import WireError

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_KEYS = ("name", "command", "args", "env")


@dataclass(frozen=True)
class McpServer:
    """A program that speaks MCP on its standard input and output.

    Attributes:
        name: Its name.
        command: The program.
        args: Its arguments.
        env: Additional environment variables. Secret: never logged.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def command_line(self) -> str:
        """The command line with the names of its variables, as a person reads it."""
        line = shlex.join([self.command, *self.args])
        return f"{line} (with the variables {', '.join(self.env)})" if self.env else line


def parse_servers(data: Any) -> list[McpServer]:
    """Parse a list of servers from JSON or TOML data; raise WireError if it is invalid."""
    if not isinstance(data, list | tuple):
        raise WireError("Request must be a list of MCP tools to sync", "mcp_servers")
    servers = [_server(entry, f"[{index}]") for index, entry in enumerate(data)]
    names = [server.name for server in servers]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise WireError(f"Two MCP servers are named {name!r}", f"[{index}].name")
    return servers


def _server(entry: Any, where: str) -> McpServer:
    if not isinstance(entry, dict):
        raise WireError(f"MCP server {where} must be an object with {', '.join(_KEYS)}", where)
    for key in entry:
        if key not in _KEYS:
            raise WireError(
                f"MCP server {where} has an unknown key {key!r}; known: {', '.join(_KEYS)}",
                f"{where}.{key}",
            )
    name, command = entry.get("name"), entry.get("command")
    if not isinstance(name, str) or not _NAME.fullmatch(name.strip()):
        raise WireError(
            f"MCP server {where}: name must be letters, digits, '_' and '-', not {name!r}",
            f"{where}.name",
        )
    if not isinstance(command, str) or len(command.split()) != 1:
        raise WireError(
            f"MCP server {name}: command must be one word, not {command!r}; use args",
            f"{where}.command",
        )
    return McpServer(
        name.strip(),
        command.strip(),
        _args(entry.get("args"), name, f"{where}.args"),
        _env(entry.get("env"), name, f"{where}.env"),
    )


def _args(value: Any, name: str, where: str) -> tuple[str, ...]:
    """Return arguments from a list, or from one string with shell quoting."""
    if value is None:
        return ()
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise WireError(f"MCP server {name}: args cannot be split: {error}", where) from None
    if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
        raise WireError(f"MCP server {name}: args must be a list of strings", where)
    return tuple(value)


def _env(value: Any, name: str, where: str) -> dict[str, str]:
    """Return variables from an object or ``K=V,K2=V2``. Errors omit values, which may be secret."""
    if value is None:
        return {}
    if isinstance(value, str):
        pairs = [pair.partition("=") for pair in value.split(",") if pair.strip()]
        if not all(equals and key.strip() for key, equals, _ in pairs):
            raise WireError(
                f"MCP server {name}: env must be KEY=VALUE pairs separated by commas", where
            )
        return {key.strip(): text.strip() for key, _, text in pairs}
    if not isinstance(value, dict) or not all(
        isinstance(key, str) and isinstance(text, str) for key, text in value.items()
    ):
        raise WireError(f"MCP server {name}: env must be an object of strings", where)
    return dict(value)
