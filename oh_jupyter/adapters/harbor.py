"""Harbor: tasks on a kernel's machine, without Docker."""

from __future__ import annotations

import os
import re
import shlex
import tarfile
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from oh_jupyter.adapters.connection import connect, missing, removal, run_command
from oh_jupyter.events import CmdOutputObservation

try:
    from harbor.agents.base import BaseAgent
    from harbor.agents.factory import AgentFactory
    from harbor.environments.base import BaseEnvironment, ExecResult, transfer_tar_filter
    from harbor.environments.capabilities import EnvironmentCapabilities
    from harbor.models.agent.name import AgentName
    from harbor.models.task.config import MCPServerConfig
except ImportError as error:
    raise missing(error, "harbor") from error

__all__ = ["OhEnvironment", "with_notebook"]

DIRECTORIES = ("/app", "/logs", "/runtime", "/solution", "/tests")
"""Directories of Harbor's tasks, which each trial has for itself."""

OF_THE_MACHINE = {
    *("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root"),
    *("/run", "/sbin", "/sys", "/tmp", "/usr", "/var"),
}
"""Directories that no trial can have for itself, because programs are in them."""

BUILD_STEP = re.compile(r"^\s*(RUN|COPY|ADD)\b.*", re.MULTILINE | re.IGNORECASE)
WORKDIR = re.compile(r"^\s*WORKDIR\s+(/\S*)\s*$", re.MULTILINE | re.IGNORECASE)
SETTING = re.compile(r"^\s*ENV\s+(\w+)=(\S+)\s*$", re.MULTILINE | re.IGNORECASE)
"""Parts of a Dockerfile; the image itself is replaced by the machine."""

RUN = """{{
root=(--tmpfs /)
for entry in /*
do if [ -L "$entry" ]; then root+=(--symlink "$(readlink "$entry")" "$entry")
elif [ -d "$entry" ]; then root+=(--dev-bind "$entry" "$entry"); fi; done
[ "$(id -u)" = 0 ] || root+=(--unshare-user --uid 0 --gid 0)
(exec bwrap "${{root[@]}}" --die-with-parent {options} -- bash -c {command}) </dev/null
}}"""
"""Command that sees the machine with a trial's directories in the place of its own."""


INSTALL = "command -v oh-jupyter || python3 -m pip install --quiet oh_jupyter"
"""Command that installs our server in an environment without it."""

SERVE = """\
unset OH_URL OH_TOKEN
export JUPYTER_RUNTIME_DIR=$(mktemp -d)
exec 3< <(exec jupyter server --no-browser --allow-root 2>&1 </dev/null)
server=$!
while read -r line <&3 && [[ $line != *"is running at"* ]]; do :; done
cat <&3 >/dev/null &
oh-jupyter mcp
kill $server
rm -rf "$JUPYTER_RUNTIME_DIR"
"""
"""MCP server over stdio with a Jupyter server of its own, which ends with it."""


class OhEnvironment(BaseEnvironment):
    """A kernel's machine, with the task's directories for each trial.

    Each command is in the kernel's log, and waits for a person where the settings require that. It
    runs in a shell of its own as root of its view of the machine, and what it leaves running ends
    with it. The kernel's machine needs bubblewrap.
    """

    def __init__(
        self,
        *args: Any,
        oh_url: str | None = None,
        oh_kernel_id: str | None = None,
        ignore_build_steps: bool = False,
        **kwargs: Any,
    ) -> None:
        """Take Harbor's arguments, and options that ``--ek`` sets.

        Args:
            *args: Harbor's own.
            oh_url: Address of the Jupyter server; by default ``OH_URL``. The token is always
                ``OH_TOKEN``: options are in Harbor's logs.
            oh_kernel_id: An open kernel; None for the default one, or that of the address.
            ignore_build_steps: Run tasks whose Dockerfile installs or copies something, because
                the machine has it.
            **kwargs: Harbor's own.

        Raises:
            ServerError: There is no address.
        """
        self._ignores_build_steps = ignore_build_steps
        super().__init__(*args, **kwargs)
        self._client = connect("Harbor", oh_url, kernel_id=oh_kernel_id)
        self._root = ""
        self._image_variables = dict(SETTING.findall(self._dockerfile()))
        self._workdir = self._working_directory()
        self._directories = sorted({*DIRECTORIES, _top(self._workdir)})

    @staticmethod
    def type() -> str:
        """Return the name of this kind of environment."""
        return "oh_jupyter"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """None of the optional ones: no GPUs, no network policies, no mounts."""
        return EnvironmentCapabilities()

    def _dockerfile(self) -> str:
        path = Path(self.environment_dir, "Dockerfile")
        return path.read_text("utf-8") if path.is_file() else ""

    def _working_directory(self) -> str:
        named = WORKDIR.findall(self._dockerfile())
        return str(self.task_env_config.workdir or (named[-1] if named else "/app"))

    def _validate_definition(self) -> None:
        """Raise ValueError for a task that needs what only its image has."""
        steps = [match.group(0).strip() for match in BUILD_STEP.finditer(self._dockerfile())]
        if Path(self.environment_dir, "docker-compose.yaml").exists():
            steps = ["docker-compose.yaml"]
        if steps and not self._ignores_build_steps:
            raise ValueError(
                f"The task {self.environment_name} builds an image ({'; '.join(steps)[:200]}), and "
                "oh_jupyter runs without one. If this machine has what it needs, add --ek "
                "ignore_build_steps=true; otherwise use --env docker"
            )
        workdir = self._working_directory()
        if not workdir.startswith("/") or _top(workdir) in {"/", *OF_THE_MACHINE}:
            raise ValueError(
                f"The task {self.environment_name} works in {workdir}, where the machine has its "
                "programs and files. Use --env docker for it"
            )

    async def start(self, force_build: bool) -> None:
        """Create the trial's directories.

        Args:
            force_build: Not used: there is no image.

        Raises:
            RuntimeError: The machine has no bubblewrap, or no directory can be created.
            OhJupyterError: The server or the kernel cannot be used.
        """
        made = await self._run(
            '{ bwrap --version >/dev/null && mktemp -d "/var/tmp/oh-XXXXXXXX"; }',
            title="make a directory for the trial",
        )
        if made.exit_code:
            raise RuntimeError(f"The kernel's machine cannot run trials: {made.content.strip()}")
        self._root = made.content.strip()
        names = [f"{self._root}{each}" for each in (*self._directories, self._workdir)]
        await self._run(shlex.join(["mkdir", "-p", *names]))
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """Close the connections.

        Args:
            delete: Remove the trial's directories.
        """
        try:
            if self._root and delete:
                await self._run(removal(self._root), title=f"remove {self._root}")
        finally:
            await self._client.close()

    async def reset_dirs(
        self,
        *,
        remove_dirs: Sequence[str | PurePath],
        create_dirs: Sequence[str | PurePath],
        chmod_dirs: Sequence[str | PurePath] | None = None,
    ) -> ExecResult:
        """Remove and create directories.

        The trial's own need no question to a person, and no permissions: root is its only user.

        Args:
            remove_dirs: Directories to remove first.
            create_dirs: Directories to create.
            chmod_dirs: Directories that every user may change, if they are not the trial's.

        Returns:
            The result of the commands.
        """
        removed, created = ([*map(str, dirs)] for dirs in (remove_dirs, create_dirs))
        if any(self._on_machine(path) == path for path in (*removed, *created)):
            return await super().reset_dirs(
                remove_dirs=remove_dirs, create_dirs=create_dirs, chmod_dirs=chmod_dirs
            )
        # A removed directory of the machine's view must be there for the next command.
        created += [*self._directories, self._workdir]
        remove = shlex.join(["rm", "-rf", "--", *map(self._in_root, removed)])
        create = shlex.join(["mkdir", "-p", "--", *map(self._in_root, created)])
        text = f"{{ cd -- {shlex.quote(self._root)} && {remove} && {create}; }}"
        title = " ".join(["make directories", *map(str, create_dirs)])
        ran = await self._run(text, title=title)
        return ExecResult(stdout=ran.content, stderr="", return_code=ran.exit_code)

    def _in_root(self, path: str) -> str:
        """Return the path of a trial's file below the trial's root."""
        return self._on_machine(path).removeprefix(f"{self._root}/")

    async def ensure_dirs(
        self, dirs: Sequence[str | PurePath], *, chmod: bool = True
    ) -> ExecResult | None:
        """Create directories; see ``reset_dirs``.

        Args:
            dirs: The directories.
            chmod: Whether every user may change them, if they are not the trial's.

        Returns:
            The result of the commands, or None without directories.
        """
        if not dirs:
            return None
        return await self.reset_dirs(
            remove_dirs=[], create_dirs=dirs, chmod_dirs=dirs if chmod else None
        )

    async def empty_dirs(
        self, dirs: Sequence[str | PurePath], *, chmod: bool = True
    ) -> ExecResult | None:
        """Create directories, or remove what they contain; see ``reset_dirs``.

        Args:
            dirs: The directories.
            chmod: Whether every user may change them, if they are not the trial's.

        Returns:
            The result of the commands, or None without directories.
        """
        if not dirs:
            return None
        return await self.reset_dirs(
            remove_dirs=dirs, create_dirs=dirs, chmod_dirs=dirs if chmod else None
        )

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a command; cancelling the task ends it.

        Args:
            command: The command.
            cwd: Its directory; by default that of the task.
            env: More environment variables.
            timeout_sec: Time limit in seconds.
            user: None or root: there is no other user.

        Returns:
            Exit code, and output with errors in one text.

        Raises:
            RuntimeError: It was ended by its time limit, was not run, or names another user.
        """
        user = self._resolve_user(user)
        if user not in (None, "root", "0", 0):
            raise RuntimeError(f"Trials run as root of their directories, not as {user!r}")
        options = []
        for each in self._directories:
            options += ["--bind", f"{self._root}{each}", each]
        options += ["--chdir", cwd or self._workdir]
        for name, value in {**self._image_variables, **(self._merge_env(env) or {})}.items():
            options += ["--setenv", name, value]
        text = RUN.format(options=shlex.join(options), command=shlex.quote(command))
        ran = await self._run(text, timeout_sec, command)
        if ran.exit_code == -1:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds")
        return ExecResult(stdout=ran.content, stderr="", return_code=ran.exit_code)

    async def _run(
        self, command: str, timeout: float | None = None, title: str = ""
    ) -> CmdOutputObservation:
        """Run a command outside of the trial; its exit code is -1 after the time limit."""
        observation = await run_command(self._client, command, timeout, title=title)
        if not isinstance(observation, CmdOutputObservation):
            raise RuntimeError(observation.content)
        return observation

    def _on_machine(self, path: str) -> str:
        """Return the path of a trial's file on the machine."""
        whole = os.path.normpath(os.path.join(self._workdir, path))
        return f"{self._root}{whole}" if _top(whole) in self._directories else whole

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Store a file.

        Args:
            source_path: The file here.
            target_path: Its path in the environment; missing directories are created.

        Raises:
            TransferError: It cannot be stored.
        """
        target = self._on_machine(target_path)
        with Path(source_path).open("rb") as opened:
            await self._client.write_bytes(target, opened)
        if os.access(source_path, os.X_OK):
            await self._run(shlex.join(["chmod", "+x", target]))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Fetch a file.

        Args:
            source_path: Its path in the environment.
            target_path: The file here.

        Raises:
            TransferError: It does not exist, or cannot be read.
        """
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(f"{target_path}.{uuid.uuid4().hex}.part")
        try:
            with unfinished.open("wb") as sink:
                await self._client.read_into(self._on_machine(source_path), sink)
            unfinished.replace(target_path)
        finally:
            unfinished.unlink(missing_ok=True)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Store the contents of a directory.

        Args:
            source_dir: The directory here.
            target_dir: Its path in the environment; it is created if it is missing.

        Raises:
            RuntimeError: It cannot be unpacked.
            TransferError: It cannot be stored.
        """
        archive, target = f"{self._root}/{uuid.uuid4().hex}", self._on_machine(target_dir)
        with tempfile.TemporaryFile() as packed:
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(source_dir, ".")
            packed.seek(0)
            await self._client.write_bytes(archive, packed)
        unpack = shlex.join(["tar", "-xf", archive, "-C", target, "--no-same-owner"])
        text = f"{{ mkdir -p {shlex.quote(target)} && {unpack}; rm -f {archive}; }}"
        await self._checked(text, f"store files in {target_dir}")

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Fetch the contents of a directory.

        Args:
            source_dir: Its path in the environment.
            target_dir: The directory here; its files are replaced.

        Raises:
            RuntimeError: It cannot be packed.
            TransferError: It cannot be read.
        """
        archive = f"{self._root}/{uuid.uuid4().hex}"
        await self._checked(
            shlex.join(["tar", "-cf", archive, "-C", self._on_machine(source_dir), "."])
        )
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile() as packed:
            try:
                await self._client.read_into(archive, packed)
            finally:
                await self._run(shlex.join(["rm", "-f", archive]))
            packed.seek(0)
            with tarfile.open(fileobj=packed) as tar:
                tar.extractall(target_dir, filter=transfer_tar_filter)

    async def _checked(self, command: str, title: str = "") -> None:
        ran = await self._run(command, title=title)
        if ran.exit_code:
            raise RuntimeError(ran.content.strip())


def with_notebook(agent: type[BaseAgent]) -> type[BaseAgent]:
    """Give an agent of Harbor our MCP server, with a kernel in the task's environment.

    In Harbor's command line, ``--agent oh_jupyter.adapters.harbor:claude_code`` does this for the
    agent ``claude-code``. It works in every environment that has Python, or has oh_jupyter.

    Args:
        agent: A class of Harbor, or one's own that uses ``self.mcp_servers``.

    Returns:
        A subclass.
    """

    class WithNotebook(agent):
        """An agent with the MCP server ``notebook``."""

        def __init__(
            self, *args: Any, mcp_servers: list[MCPServerConfig] | None = None, **kwargs: Any
        ) -> None:
            notebook = MCPServerConfig(
                name="notebook", transport="stdio", command="bash", args=["-c", SERVE]
            )
            super().__init__(*args, mcp_servers=[*(mcp_servers or []), notebook], **kwargs)

        async def setup(self, environment: BaseEnvironment) -> None:
            """Set the agent up, and install our server if it is missing."""
            await super().setup(environment)
            installed = await environment.exec(INSTALL, user="root")
            if installed.return_code:
                raise RuntimeError(
                    "oh_jupyter is not in the task's environment, and cannot be installed there: "
                    f"{installed.stdout}{installed.stderr}"
                )

    WithNotebook.__name__, WithNotebook.__module__ = agent.__name__, agent.__module__
    return WithNotebook


def __getattr__(name: str) -> type[BaseAgent]:
    """Return an agent of Harbor, by its name with underscores, with our MCP server."""
    try:
        agent = AgentFactory.get_agent_class(AgentName(name.replace("_", "-")))
    except ValueError:
        raise AttributeError(f"Harbor has no agent named {name.replace('_', '-')!r}") from None
    return with_notebook(agent)


def _top(path: str) -> str:
    """Return the first directory of an absolute path."""
    return "/".join(PurePosixPath(path).parts[:2]).replace("//", "/")
