"""Shells of agents in sandboxes: one long-lived box for each agent of a kernel."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from oh_jupyter.config import (
    BOXED_KERNEL_VARIABLE,
    Settings,
    check_value,
    environment_without_secrets,
)
from oh_jupyter.containment import is_within
from oh_jupyter.errors import SandboxError
from oh_jupyter.events import (
    Action,
    CmdOutputObservation,
    CmdRunAction,
    IPythonRunCellAction,
    Observation,
)
from oh_jupyter.installed import PACKAGE
from oh_jupyter.runtime.effects import Effects
from oh_jupyter.runtime.execution import Execution, current_execution
from oh_jupyter.runtime.host_access import HostAccess
from oh_jupyter.runtime.page_hosts import page_endpoints, page_origins
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.resources import make_shell, shell_user
from oh_jupyter.sandbox import Box, Engine, allowed_environment, find_engine, make_profile
from oh_jupyter.sandbox.availability import enforced_by
from oh_jupyter.sandbox.hints import hint
from oh_jupyter.sandbox.hosts import parse_hosts
from oh_jupyter.sandbox.mounts import homes, make_folders, own_folders, settings_files
from oh_jupyter.sandbox.profile import (
    PROTECTED_DIRECTORIES,
    Profile,
    hidden_paths,
    is_protected,
    protected_files,
    shown_paths,
)
from oh_jupyter.visibility import Visibility

if TYPE_CHECKING:
    from oh_jupyter.sandbox.profile import Network
    from oh_jupyter.sandbox.proxy import Proxy, Resolve
    from oh_jupyter.shell import ShellSession

T = TypeVar("T")

PERSON = "%oh_run --sandbox"
"""Name of the box for a person's own commands."""


MAX_NOTES = 3
"""Maximum number of refused hosts that the result of a command names."""

NETWORKS = {
    "none": "no network",
    "listed": "listed hosts",
    "ask": "listed and approved hosts",
    "host": "the machine's network",
}
"""Networks of boxes in a status line."""

RENEWED = (
    "This is a new sandbox, because {} was replaced outside of the last one, which did not protect "
    "the new file: the shell's variables, directory and background jobs are gone."
)


@dataclass(frozen=True)
class BoxedShell:
    """A box, the shell in it, and its way to a network."""

    box: Box
    shell: ShellSession
    access: HostAccess
    proxy: Proxy | None
    notes: list[str] = field(default_factory=list)

    def interrupt(self, before: float) -> None:
        """Interrupt its command, and the questions that it waits for, unless it began later."""
        if self.shell.interrupt_now(before):
            self.access.withdraw()

    async def close(self) -> None:
        """End all of its processes and connections."""
        await self.shell.close_async()
        self.access.withdraw()
        if self.proxy is not None:
            await self.proxy.close()
        self.box.close()


class BoxedShells:
    """The boxes of a kernel, by the agent that they belong to.

    Attributes:
        last: The shell of the last agent that used one.
        kernel_network: Network of the box that the whole kernel is in, or "" outside of one.
        resolve: Resolves names for the proxies; None for the machine's resolver.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        workspace_dir: str,
        in_thread: Callable[..., Awaitable[T]],
        make_access: Callable[[], HostAccess],
        keep_output: Callable[[str], str] | None = None,
    ) -> None:
        """Start no box yet; raise ConfigError for an invalid setting."""
        check_value("sandbox", settings().sandbox)
        check_value("sandbox_network", settings().sandbox_network)
        parse_hosts(settings().sandbox_hosts)
        self._settings = settings
        self._workspace_dir = workspace_dir
        self._in_thread: Callable[..., Awaitable[object]] = in_thread
        self._boxes: dict[str, BoxedShell] = {}
        self._starting = asyncio.Lock()
        self._exports: dict[str, str] = {}
        self._visibility: tuple[Settings, Visibility] | None = None
        self._make_access = make_access
        self._keep_output = keep_output
        self._loop = asyncio.get_running_loop()
        self.kernel_network = _kernel_network()
        self.engine: Engine | None = None
        self.last: ShellSession | None = None
        self.resolve: Resolve | None = None

    @property
    def is_on(self) -> bool:
        """Whether agents' commands belong in a box of their own."""
        return self._settings().sandbox != "off" and not self.kernel_network

    @property
    def shells(self) -> list[ShellSession]:
        """The running shells."""
        return [each.shell for each in self._boxes.values()]

    def shell_of(self, action: Action) -> ShellSession | None:
        """Return the shell of the agent that an Action belongs to, None if it has not started."""
        boxed = self._boxes.get(_owner(action))
        return None if boxed is None else boxed.shell

    async def applies(self, action: Action, *, is_agents: bool) -> bool:
        """Return whether an Action is a command that runs in a box.

        Raises:
            SandboxError: A box is required, and none can be made here.
        """
        if not isinstance(action, CmdRunAction):
            return False
        if self.kernel_network or (not action.sandbox and not (is_agents and self.is_on)):
            return False
        engine = await self.find()
        if engine.program is not None:
            return True
        if action.sandbox or self._settings().sandbox == "required":
            raise SandboxError(
                f"Nothing was run, because no sandbox can be made: {engine.sentence}"
            )
        return False

    def questions(self, action: Action, known: Effects) -> list[Reason]:
        """Return the reasons to ask about a file or a host that commands in a box cannot use.

        Raises:
            SandboxError: It opens a page of a host that is not listed, and nobody is asked.
        """
        if not self.is_on or isinstance(action, CmdRunAction | IPythonRunCellAction):
            return []
        return [*self._file_questions(known)[:1], *self._page_questions(known)]

    def _file_questions(self, known: Effects) -> list[Reason]:
        if not known.paths:
            return []
        hides = self.visibility().hides
        workspace = os.path.realpath(self._workspace_dir)
        reasons = []
        for path in known.paths:
            for real in sorted(known.real[path]):
                if hides(real):
                    reasons.append(Reason("uses_hidden", (real,)))
                if path in known.writes and is_within(real, workspace) and is_protected(real):
                    reasons.append(Reason("changes_program"))
        return reasons

    def _page_questions(self, known: Effects) -> list[Reason]:
        settings = self._settings()
        if settings.sandbox_network not in ("listed", "ask"):
            return []
        hosts = parse_hosts(settings.sandbox_hosts)
        opened = page_endpoints(known.addresses, self._workspace_dir)
        unlisted = [each for each in opened if not hosts.lists(each)]
        if unlisted and settings.sandbox_network == "listed":
            raise SandboxError(
                f"{unlisted[0]} is refused: sandbox_hosts does not list it. If it is needed, ask "
                "the user to add it there."
            )
        return [Reason("reaches_host", (str(each),)) for each in unlisted]

    def browser_settings(self) -> Settings:
        """Return the settings for browsers: with listed hosts, these are all that they reach."""
        settings = self._settings()
        is_listed = self.is_on and settings.sandbox_network == "listed"
        if not is_listed or settings.browser_allowed_origins:
            return settings
        # An empty list would allow everything.
        origins = page_origins(settings.sandbox_hosts) or ("https://nothing.invalid",)
        return replace(settings, browser_allowed_origins=origins)

    def visibility(self) -> Visibility:
        """Return which paths boxes see, as resolved when the settings were first used."""
        settings = self._settings()
        if self._visibility is None or self._visibility[0] != settings:
            self._visibility = (settings, self._visible_with(settings))
        return self._visibility[1]

    def _visible_with(self, settings: Settings) -> Visibility:
        user_homes = homes(shell_user(settings))
        own = [*own_folders(settings), *settings.sandbox_hidden]
        return Visibility(
            hidden=hidden_paths(self._workspace_dir, user_homes, own),
            homes=user_homes,
            shown=shown_paths(self._workspace_dir, user_homes, settings.sandbox_visible),
            roots=[
                os.path.join(self._workspace_dir, os.path.expanduser(each))
                for each in ("", *settings.sandbox_writable)
            ],
        )

    def placeholders(self) -> list[str]:
        """Return the missing paths of the workspace that a box makes, which no agent changes.

        A rewind that removed one would end its protection in a running box.
        """
        if not self.is_on:
            return []
        files = protected_files(self._workspace_dir, homes(shell_user(self._settings())))
        paths = [os.path.join(self._workspace_dir, name) for name in PROTECTED_DIRECTORIES]
        return [
            path for path in (*paths, *(path for path, _ in files)) if not os.path.lexists(path)
        ]

    async def find(self) -> Engine:
        """Return the engine, tried until it works."""
        if self.engine is None or self.engine.program is None:
            user = shell_user(self._settings())
            self.engine = cast(Engine, await self._in_thread(find_engine, user))
        return self.engine

    def contains(self, *, is_boxed: bool) -> bool:
        """Return whether nothing leaves an Action's box unasked, so that it needs no approval."""
        return self._network(is_boxed=is_boxed) not in ("", "host")

    def is_silent(self, *, is_boxed: bool) -> bool:
        """Return whether an Action can send no data out, not even to an allowed host."""
        return self._network(is_boxed=is_boxed) == "none"

    def _network(self, *, is_boxed: bool) -> str:
        """Return the network of an Action's box, or "" outside of one."""
        return self.kernel_network or (self._settings().sandbox_network if is_boxed else "")

    def sandboxed(self, execution: Execution, *, only_asks: bool) -> bool | None:
        """Return whether an Action runs in a box; None where nobody expects one.

        With ``only_asks``, the runtime does not know where a command runs.
        """
        if execution.is_boxed or self.kernel_network:
            return True
        return False if self.is_on and execution.is_agents and not only_asks else None

    async def open(self, action: CmdRunAction, *, is_agents: bool) -> BoxedShell:
        """Return the box of a command's agent, with its shell started."""
        owner = _owner(action) if is_agents else PERSON
        async with self._starting:
            boxed = self._boxes.get(owner)
            replaced = [] if boxed is None else boxed.box.unprotected()
            if boxed is not None and replaced:
                del self._boxes[owner]
                await boxed.close()
            if boxed is None or replaced:
                boxed = self._boxes[owner] = await self._start()
                boxed.notes.extend(RENEWED.format(path) for path in replaced[:1])
            if is_agents:
                self.last = boxed.shell
        if action.command and not action.is_input:
            boxed.access.begin(action, "agent" if is_agents else "user")
        return boxed

    async def run(self, action: CmdRunAction, boxed: BoxedShell) -> Observation:
        """Run a command in a box, with notes about what its box has refused."""
        try:
            observation = await boxed.shell.execute_async(action)
        except asyncio.CancelledError:
            boxed.access.withdraw()
            raise
        if isinstance(observation, CmdOutputObservation):
            for note in self._notes(observation, boxed):
                observation.metadata.suffix += f"\n[{note}]"
        return observation

    def _notes(self, observation: CmdOutputObservation, boxed: BoxedShell) -> list[str]:
        access = boxed.access
        notes = [*boxed.notes, *access.refusals.values()][:MAX_NOTES]
        boxed.notes.clear()
        if waiting := access.waiting:
            hosts = ", ".join(sorted(waiting)[:MAX_NOTES])
            notes.append(f"The user has not decided yet whether a command may reach {hosts}.")
        if not notes and observation.exit_code not in (0, -1):
            notes.append(hint(observation.content, self._settings().sandbox_network))
        return [note for note in notes if note]

    async def _start(self) -> BoxedShell:
        settings, engine = self._settings(), await self.find()
        user = shell_user(settings)
        profile = await self._in_thread(_profile, settings, self._workspace_dir, user)
        box = Box(profile, engine, user)  # type: ignore[arg-type]
        env = {**allowed_environment(environment_without_secrets()), **self._exports}
        access = self._make_access()
        proxy: Proxy | None = None
        if box.profile.network == "proxy":
            from oh_jupyter.sandbox.proxy import Proxy

            proxy = Proxy(access, self.resolve)
        shell = make_shell(
            settings, self._workspace_dir, env=env, enclosure=box, keep_output=self._keep_output
        )
        boxed = BoxedShell(box, shell, access, proxy)
        try:
            if proxy is not None:
                await proxy.listen(box.proxy_socket, user)
            await shell.initialize_async()
        except BaseException:
            await boxed.close()
            raise
        return boxed

    async def box_of_readers(self) -> Box | None:
        """Return a box for the process that reads an agent's document; None where it needs none.

        Raises:
            SandboxError: A box is required, and none can be made here.
        """
        settings = self._settings()
        if not self.is_on or not current_execution.get().is_agents:
            return None
        engine, user = await self.find(), shell_user(settings)
        if engine.program is None:
            if settings.sandbox == "required":
                raise SandboxError(
                    f"Nothing was read, because no sandbox can be made: {engine.sentence}"
                )
            return None
        profile = cast(
            Profile, await self._in_thread(_profile, settings, self._workspace_dir, user)
        )
        return Box(_for_readers(profile), engine)

    async def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in the boxes, now and in later ones."""
        self._exports.update(variables)
        for boxed in self._boxes.values():
            await boxed.shell.set_env_async(variables)

    def interrupt(self, before: float = math.inf) -> None:
        """Press Ctrl-C in every box, for commands that began before a time; from any thread."""
        for boxed in self._boxes.values():
            self._loop.call_soon_threadsafe(boxed.interrupt, before)

    async def close(self) -> None:
        """End the boxes and all their processes; the next use starts new ones."""
        async with self._starting:
            boxes, self._boxes, self.last = list(self._boxes.values()), {}, None
        for boxed in boxes:
            await boxed.close()

    def facts(self) -> dict[str, str]:
        """Return where agents' commands run, and the network of their box.

        The place is ``kernel`` (its box), ``box``, ``none`` (no box), ``missing`` (no box, although
        it is wanted) or ``refused`` (nowhere, because it is required).
        """
        settings, engine = self._settings(), self.engine
        if self.kernel_network:
            return {"place": "kernel", "network": self.kernel_network}
        if settings.sandbox == "off":
            return {"place": "none", "network": ""}
        if engine is not None and engine.program is None:
            missing = "refused" if settings.sandbox == "required" else "missing"
            return {"place": missing, "network": ""}
        return {"place": "box", "network": settings.sandbox_network}

    def enforced_by(self) -> str:
        """Return what enforces the boxes of agents' commands, "" where there are none."""
        if self.facts()["place"] != "box":
            return ""
        is_superuser = shell_user(self._settings()) is None and os.geteuid() == 0
        return enforced_by(is_superuser=is_superuser)

    def status(self) -> str:
        """Return one line about agents' commands."""
        settings, engine = self._settings(), self.engine
        if self.kernel_network:
            return f"sandboxed: the whole kernel, {NETWORKS[self.kernel_network]}"
        if settings.sandbox == "off":
            return "not sandboxed: sandbox is off"
        if engine is not None and engine.program is None:
            state = "nothing runs" if settings.sandbox == "required" else "not sandboxed"
            return f"{state}: {engine.sentence}"
        network = NETWORKS[settings.sandbox_network]
        boxes = len(self._boxes)
        return f"sandboxed ({settings.sandbox}, {network}), {boxes} box{'es' * (boxes != 1)} open"


def _for_readers(profile: Profile) -> Profile:
    """Return the profile of a box without network, in which nothing can be written."""
    ours = os.path.dirname(PACKAGE)
    return replace(
        profile,
        writable=(), lifted=(), directories=(), files=(), read_only=(), nested=(), sockets=(),
        visible=(*profile.visible, ours), network="none",
    )  # fmt: skip


def _kernel_network() -> str:
    """Return the network of the box that the whole kernel is in, or "" outside of one.

    A cell could set the variable, but not the name of the first process.
    """
    network = os.environ.get(BOXED_KERNEL_VARIABLE, "")
    if network and sys.platform == "linux":
        first = Path("/proc/1/comm").read_text(encoding="utf-8").strip()
        return network if network in NETWORKS and first == "bwrap" else ""
    return network if network in NETWORKS else ""


def _owner(action: Action) -> str:
    """Return the name of the agent that an Action belongs to; clients without one share a box."""
    return action.actor.guest or action.actor.persona


def _profile(settings: Settings, workspace_dir: str, user: str | None) -> object:
    make_folders(settings)
    is_plain = settings.sandbox_network in ("none", "host")
    return make_profile(
        workspace_dir,
        homes=homes(user),
        own_folders=own_folders(settings),
        writable=settings.sandbox_writable,
        hidden=settings.sandbox_hidden,
        visible=settings.sandbox_visible,
        protected=settings_files(),
        network=cast("Network", settings.sandbox_network) if is_plain else "proxy",
        max_processes=settings.sandbox_max_processes,
    )
