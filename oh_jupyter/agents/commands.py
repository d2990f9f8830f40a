"""The known agents, and how to start them."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from oh_jupyter.errors import AgentError, AgentNotFoundError
from oh_jupyter.installed import find_program, python_command

MIN_RESEMBLANCE = 0.8
"""Ratio of difflib above which a word counts as a misspelled name."""

TOOL_SERVER = "oh"
"""Name under which an agent gets our MCP server."""

CODEX_TIMEOUT_SECONDS = 24 * 3600
"""Timeout of a call, which waits for a person or a long cell. An interrupt ends it earlier."""

ENTRY_POINT_GROUP = "oh_jupyter.agents"
"""Entry points of this group name an AgentCommand or a command line of other packages."""


@dataclass(frozen=True)
class AgentCommand:
    """Command line and settings that start an agent.

    Attributes:
        name: The agent's name.
        command: Program and arguments; it speaks ACP on standard input and output.
        npm_package: npm package with the program, which then needs Node.js.
        installation: How to install it.
        session_options: ``_meta`` of ``session/new``, which disables the agent's own tools.
        needs_tools: Whether its own tools are disabled, so that it depends on ours.
        configure_tools: Returns the arguments that make our MCP server known to it, from the
            server's command, for an agent that does not get the server with ``session/new``.
    """

    name: str
    command: tuple[str, ...]
    npm_package: str = ""
    installation: str = ""
    session_options: Mapping[str, Any] = field(default_factory=dict)
    needs_tools: bool = False
    configure_tools: Callable[[Sequence[str]], tuple[str, ...]] | None = None

    def arguments(self) -> tuple[str, ...]:
        """Return program and arguments as they can be started here.

        Returns:
            The command, with the full path of its program.

        Raises:
            AgentNotFoundError: The program is not installed.
        """
        program, *rest = self.command
        path = find_program(program)
        if path is not None:
            return (path, *rest)
        hint = f" Install it: {self.installation}" if self.installation else ""
        raise AgentNotFoundError(
            f"The agent {self.name!r} is not installed: no program {program!r} on the PATH.{hint}"
        )

    @property
    def is_installed(self) -> bool:
        """Whether its program is on the PATH."""
        return find_program(self.command[0]) is not None


# Claude Code's tools that act on files and processes, of the releases 2.0 and 2.1.
_CLAUDE_TOOLS = (
    *("Bash", "BashOutput", "KillShell", "PowerShell", "Monitor", "REPL"),
    *("Edit", "Write", "NotebookEdit", "Read", "Glob", "Grep", "LSP"),
    *("EnterWorktree", "ExitWorktree"),
)

# apply_patch cannot be switched off for a model that Codex knows; it cannot write read-only files.
_CODEX_OPTIONS = (
    *("features.shell_tool=false", "features.unified_exec=false", "features.tool_search=false"),
    *("features.multi_agent=false", 'sandbox_mode="read-only"', 'approval_policy="never"'),
)


def _codex_tools(command: Sequence[str]) -> tuple[str, ...]:
    """Return the options with which Codex uses our MCP server.

    A server in ``session/new`` gets Codex' default timeout, which progress does not extend.
    """
    key = f"mcp_servers.{TOOL_SERVER}"
    options = (
        f"{key}.command={json.dumps(command[0])}",
        f"{key}.args={json.dumps(list(command[1:]))}",
        f"{key}.tool_timeout_sec={CODEX_TIMEOUT_SECONDS}",
    )
    return tuple(word for option in options for word in ("-c", option))


_SDK_AGENT = AgentCommand(
    "openhands", tuple(python_command("oh_jupyter.openhands")), needs_tools=True
)
"""OpenHands' SDK with our tools only, if it is installed beside the kernel."""

_AGENTS = (
    AgentCommand(
        "claude",
        ("claude-agent-acp",),
        "@agentclientprotocol/claude-agent-acp",
        "npm install -g @agentclientprotocol/claude-agent-acp",
        {"claudeCode": {"options": {"disallowedTools": list(_CLAUDE_TOOLS)}}},
        needs_tools=True,
    ),
    AgentCommand(
        "codex",
        ("codex-acp", *(word for option in _CODEX_OPTIONS for word in ("-c", option))),
        "@zed-industries/codex-acp",
        "npm install -g @zed-industries/codex-acp",
        needs_tools=True,
        configure_tools=_codex_tools,
    ),
    AgentCommand(
        "gemini",
        ("gemini", "--experimental-acp"),
        "@google/gemini-cli",
        "npm install -g @google/gemini-cli",
    ),
    AgentCommand("goose", ("goose", "acp"), installation="brew install block-goose-cli"),
    AgentCommand(
        "openhands",
        ("openhands", "acp"),
        installation='uv pip install "oh_jupyter[openhands]" (Python 3.12), or uv tool install '
        "openhands --python 3.12",
    ),
    AgentCommand("opencode", ("opencode", "acp"), "opencode-ai", "npm install -g opencode-ai"),
)


def known_agents(
    own: Mapping[str, str] | None = None, offered: Iterable[AgentCommand] = ()
) -> dict[str, AgentCommand]:
    """Return the available agents.

    Args:
        own: The person's command lines by name, which take precedence.
        offered: Agents of the protocol's registry, of which the installed ones are available.

    Returns:
        The agents by name: those of oh_jupyter, of other packages, of the person.

    Raises:
        AgentError: A command line is invalid.
    """
    agents = {agent.name: agent for agent in _AGENTS}
    if find_spec("openhands") is not None and find_spec("openhands.sdk") is not None:
        agents[_SDK_AGENT.name] = _SDK_AGENT
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            agent = entry.load()
        except Exception as error:
            raise AgentError(f"The agent {entry.name!r} cannot be loaded: {error}") from error
        agents[entry.name] = (
            agent if isinstance(agent, AgentCommand) else _from_line(entry.name, str(agent))
        )
    agents |= {name: _from_line(name, line) for name, line in (own or {}).items()}
    packages = {each.npm_package or each.command[0] for each in agents.values()}
    for agent in offered:
        is_new = (agent.npm_package or agent.command[0]) not in packages
        if is_new and agent.is_installed:
            agents.setdefault(agent.name, agent)
    return agents


def _from_line(name: str, line: str) -> AgentCommand:
    try:
        words = shlex.split(line)
    except ValueError as error:
        words, reason = [], f": {error}"
    else:
        reason = ", it is empty"
    if not words:
        raise AgentError(f"The command line of the agent {name!r} cannot be used{reason}")
    return AgentCommand(name, tuple(words))


def find_agent(name: str, agents: Mapping[str, AgentCommand]) -> AgentCommand:
    """Return one of the agents by name, or raise AgentNotFoundError."""
    if name not in agents:
        similar = similar_name(name, agents)
        raise AgentNotFoundError(
            f"There is no agent {name!r}. {f'Did you mean {similar}? ' if similar else ''}"
            f"Agents: {', '.join(agents)}. Add your own in the setting agents"
        )
    return agents[name]


def similar_name(name: str, agents: Iterable[str]) -> str:
    """Return the agent with the most similar name, or ""."""
    matches = difflib.get_close_matches(name, agents, n=1, cutoff=MIN_RESEMBLANCE)
    return matches[0] if matches else ""
