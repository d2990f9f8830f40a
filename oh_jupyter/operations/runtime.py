"""Operations on the state of a runtime, its events and its tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oh_jupyter.operations.declaration import Operation, bounded, optional
from oh_jupyter.operations.kernel import CellSummary


@dataclass(frozen=True)
class EventPage:
    """Events of a log.

    Attributes:
        workspace_dir: Directory of relative paths.
        events: The events in wire form.
    """

    workspace_dir: str
    events: list[dict[str, Any]]


@dataclass(frozen=True)
class VSCodeAddress:
    """Address of VS Code.

    Attributes:
        token: Its connection token; null if it does not run.
        url: Its address; null if it does not run.
        problem: Why VS Code is missing, and what to do; null if nothing is wrong.
    """

    token: str | None = None
    url: str | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Skill:
    """An agent skill.

    Attributes:
        name: Name of the function.
        signature: Its signature.
        docstring: Its docstring.
    """

    name: str
    signature: str
    docstring: str


@dataclass(frozen=True)
class ToolList:
    """The tools in a kernel.

    Attributes:
        skills: Names of the tools that are skills.
        tools: All tools, as MCP lists them.
    """

    skills: list[str]
    tools: list[dict[str, Any]]


@dataclass(frozen=True)
class MemoryUsage:
    """Resident memory in bytes.

    Attributes:
        kernel: That of the kernel's process.
        children: That of its child processes.
        shell: That of the shell and its child processes; 0 if it does not run.
    """

    kernel: int
    children: int
    shell: int


@dataclass(frozen=True)
class CommandBox:
    """The box in which agents' commands run, if any.

    Attributes:
        place: The box of the whole kernel, a box of their own, none, none although it is wanted,
            or nowhere because a box is required and missing.
        network: Network of the box; "" outside of one.
    """

    place: Literal["kernel", "box", "none", "missing", "refused"]
    network: str


@dataclass(frozen=True)
class Restriction:
    """A capability that the administrator's policy switches off or limits.

    Attributes:
        capability: Its name.
        value: "off", or what is allowed.
        reason: A sentence for people and agents.
    """

    capability: str
    value: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class RuntimeStatus:
    """State of a runtime.

    Attributes:
        generation: Its id; a new one means that state was lost.
        workspace_dir: Absolute path of the workspace.
        cwd: Working directory of the shell.
        events: Number of events in the log.
        idle_time: Seconds since the last Action.
        running: The Actions that run, a sentence each.
        waiting: Why Actions wait for a person, by their event ids.
        allowed: What agents may do without asking, a line each.
        plugins: Names of the plugins that run.
        plugin_problems: Why other plugins do not run, by name.
        shell: Process id of the shell; null if it does not run.
        sandbox: One line about the sandbox of agents' commands.
        untrusted_text: Hosts whose text agents have read lately.
        changes_attributed: Method by which changes of files are attributed, or why they are not.
        browser: Whether a browser was started.
        memory: Memory of the kernel, its children and the shell.
        sandbox_enforced_by: What enforces the boxes of commands; missing where there are none.
        untrusted_settings: Notice of settings that need a person's trust; missing if none do.
        cell: The cell that the kernel executes; null if there is none.
        browsers: Names of the open browsers.
        agents: State of each started agent, by name.
        box: Where agents' commands run.
        restrictions: What the administrator's policy switches off or limits.
    """

    generation: str
    workspace_dir: str
    cwd: str
    events: int
    idle_time: float
    running: list[str]
    waiting: dict[str, str]
    allowed: list[str]
    plugins: list[str]
    plugin_problems: dict[str, str]
    shell: int | None
    sandbox: str
    untrusted_text: list[str]
    changes_attributed: str
    browser: bool
    memory: MemoryUsage
    sandbox_enforced_by: str = optional("")
    untrusted_settings: str = optional("")
    cell: CellSummary | None
    browsers: list[str]
    agents: dict[str, Literal["busy", "ready"]]
    box: CommandBox
    restrictions: list[Restriction]


@dataclass(frozen=True)
class Status(Operation[RuntimeStatus], scope="anyone"):
    """Return the state of the runtime: what runs, its box and its restrictions."""


@dataclass(frozen=True)
class EndResource(Operation[None], scope="person"):
    """End the shell, a browser or an agent; the next use starts a new one.

    Attributes:
        kind: What it is.
        name: Its name; "" for the shell.
    """

    kind: Literal["shell", "browser", "agent"]
    name: str


@dataclass(frozen=True)
class ListFiles(Operation[list[str]], scope="anyone"):
    """List the names in a directory.

    Attributes:
        path: The directory, relative to the workspace; null for the workspace.
    """

    path: str | None = None


@dataclass(frozen=True)
class Events(Operation[EventPage], scope="anyone"):
    """List events.

    Attributes:
        start_id: The first one.
        limit: Maximum number of events; null for all.
        whole: Whether long strings are not clipped.
        wait: Seconds to wait for the first one.
    """

    start_id: int = bounded(0, minimum=0)
    limit: int | None = bounded(None, minimum=0)
    whole: bool = False
    wait: float = 0.0


@dataclass(frozen=True)
class Event(Operation[dict[str, Any]], scope="anyone"):
    """Return an event.

    Attributes:
        id: Its id.
    """

    id: int


@dataclass(frozen=True)
class Page(Operation[dict[str, Any]], scope="anyone"):
    """Return the Observation of the last browser step."""


@dataclass(frozen=True)
class Vscode(Operation[VSCodeAddress], scope="anyone"):
    """Return the address and the connection token of VS Code, or why it does not run."""


@dataclass(frozen=True)
class Skills(Operation[list[Skill]], scope="anyone"):
    """List the agent skills, which ``run_ipython`` cells can call."""


@dataclass(frozen=True)
class Tools(Operation[ToolList], scope="anyone"):
    """List the tools of MCP servers behind the kernel, as MCP does, and skills.

    Attributes:
        skills: Whether to list skills.
        taken: Names in use: a tool with one of them is prefixed by its server's name.
    """

    skills: bool = True
    taken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ToolsChanged(Operation[int], scope="anyone"):
    """Return the version of the tools.

    Attributes:
        known: Do not reply before the version differs from this one.
        wait: Seconds after which it is returned nevertheless.
    """

    known: int | None = None
    wait: float = 0.0


@dataclass(frozen=True)
class UpdateMcpServer(Operation[str], scope="anyone"):
    """Run exactly the MCP servers in the body behind the kernel; return the errors of the others.

    A person must allow the programs that an agent starts, unless the kernel's own box holds them.
    """
