"""Inspect AI: a sandbox environment on the kernel's machine, named ``oh_jupyter``."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shlex
import uuid
from typing import Any, Literal, overload

from oh_jupyter.adapters.connection import connect, missing, removal, run_command
from oh_jupyter.client import AsyncRuntimeClient
from oh_jupyter.errors import (
    OhJupyterError,
    TransferError,
    TransferNotFoundError,
    TransferTooLargeError,
)
from oh_jupyter.events import CmdOutputObservation, UserRejectObservation

try:
    from inspect_ai._util.error import PrerequisiteError
    from inspect_ai.util import (
        ExecResult,
        OutputLimitExceededError,
        SandboxEnvironment,
        SandboxEnvironmentConfigType,
        SandboxEnvironmentLimits,
        SandboxUnavailableError,
        SandboxUserUnsupportedError,
        sandboxenv,
    )
    from inspect_ai.util._sandbox._cli import SANDBOX_CLI
    from pydantic import BaseModel
except ImportError as error:
    raise missing(error, "inspect-ai") from error

__all__ = ["OhSandboxConfig", "OhSandboxEnvironment"]

INLINE_BYTES = 10_000
"""Size up to which outputs come with the end of the command; the shell keeps 11,000 lines."""

NOT_EXECUTABLE = 126
"""Exit code of a shell that may not run a program."""

PREPARE = r"""{
scratch=$(mktemp -d "${TMPDIR:-/tmp}/oh-inspect-XXXXXXXX") &&
mkdir "$scratch/work" "$scratch/tools" && mkfifo "$scratch/ready" &&
printf '%s\n' "$scratch" "$(id -u)" "$(id -un)"
}"""

RUN = """{{
(cd -- {directory} && {exports}exec {command}) <{input} >{name}.out 2>{name}.err
end=$?
out=$(wc -c <{name}.out) err=$(wc -c <{name}.err)
printf '{mark} %s %s %s\\n' $end $out $err
if [ $((out + err)) -le {inline} ]
then cat {name}.out; printf {mark}; cat {name}.err; rm -f {name}.*
else for file in {name}.out {name}.err; do
if [ $(wc -c <"$file") -gt {limit} ]
then tail -c {limit} "$file" >{name}.end && mv {name}.end "$file"; fi; done; fi
}}"""
"""Command whose outputs are apart from each other and from the terminal."""

SERVE_TOOLS = """{{
{variable}={scratch}/tools {cli} start-server && echo >{scratch}/ready && exec tail -f /dev/null
}}"""
"""Server of Inspect's own tools, which lasts as long as this command."""

TOOLS_VARIABLE = "INSPECT_SANDBOX_TOOLS_DIR"


class OhSandboxConfig(BaseModel, frozen=True, extra="forbid"):
    """Place where samples run.

    The token is always ``OH_TOKEN``, because configurations are in Inspect's logs.

    Attributes:
        url: Address of the Jupyter server; by default ``OH_URL``.
        kernel_id: An open kernel; None for the default one, or that of the address.
        directory: Working directory of all samples, which is kept; by default each sample has a
            temporary one.
    """

    url: str | None = None
    kernel_id: str | None = None
    directory: str | None = None


@sandboxenv(name="oh_jupyter")
class OhSandboxEnvironment(SandboxEnvironment):
    """A directory on a kernel's machine.

    Each command runs in a shell of its own, is in the kernel's log, and waits for a person where
    the settings require that. Processes that it leaves running end with it.
    """

    def __init__(
        self, client: AsyncRuntimeClient, scratch: str, directory: str, users: frozenset[str]
    ) -> None:
        """Make one of existing directories; ``sample_init`` creates them."""
        super().__init__()
        self._client, self._scratch, self._directory = client, scratch, directory
        self._users = users
        self._tools: asyncio.Task[Any] | None = None
        self._tools_lock = asyncio.Lock()

    @classmethod
    async def task_init(cls, task_name: str, config: SandboxEnvironmentConfigType | None) -> None:
        """Report a missing server before the first sample.

        Args:
            task_name: Not used.
            config: An ``OhSandboxConfig``, or a directory of the kernel's machine.

        Raises:
            PrerequisiteError: There is no server, or it cannot be used.
        """
        try:
            client, _ = _configured(config)
            async with client:
                await client.server_info()
        except OhJupyterError as error:
            raise PrerequisiteError(str(error)) from error

    @classmethod
    async def sample_init(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        metadata: dict[str, str],
    ) -> dict[str, SandboxEnvironment]:
        """Create the directories of a sample.

        Args:
            task_name: Not used.
            config: An ``OhSandboxConfig``, or a directory of the kernel's machine.
            metadata: Not used.

        Returns:
            One environment, ``default``.

        Raises:
            SandboxUnavailableError: The directories cannot be created.
        """
        client, directory = _configured(config)
        try:
            prepared = await _run(client, PREPARE, title="make a directory for the sample")
            if prepared.exit_code:
                raise SandboxUnavailableError(f"No directory for a sample: {prepared.content}")
        except BaseException:
            await client.close()
            raise
        scratch, *users = prepared.content.splitlines()[-3:]
        directory = directory or f"{scratch}/work"
        return {"default": cls(client, scratch, directory, frozenset(users))}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: SandboxEnvironmentConfigType | None,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        """End Inspect's tools, and remove what ``sample_init`` created.

        Args:
            task_name: Not used.
            config: Not used.
            environments: The environments of the sample.
            interrupted: Not used.
        """
        for environment in environments.values():
            await environment.as_type(cls)._close()

    async def _close(self) -> None:
        if self._tools is not None:
            self._tools.cancel()
            await asyncio.wait([self._tools])
        try:
            await _run(self._client, removal(self._scratch), title=f"remove {self._scratch}")
        finally:
            await self._client.close()

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """Run a program; cancelling the task ends it.

        Args:
            cmd: Program and arguments.
            input: Its standard input; None for none.
            cwd: Working directory; a relative one starts at the sample's.
            env: More environment variables.
            user: Name or id of the kernel's user; None for the same.
            timeout: Time limit in seconds.
            timeout_retry: Not used: only the program itself can be too slow.
            concurrency: Not used: programs do not run in this process.

        Returns:
            Exit code, output and errors.

        Raises:
            ValueError: ``cmd`` is empty, or an argument or variable has an impossible name.
            TimeoutError: The program was ended by its time limit.
            OutputLimitExceededError: It printed more than Inspect's limit.
            PermissionError: It may not be executed, or a person rejected it.
            SandboxUserUnsupportedError: The kernel runs as another user.
            SandboxUnavailableError: The server or the kernel did not start the program.
        """
        if user is not None and user not in self._users:
            raise SandboxUserUnsupportedError(
                f"Commands run as the kernel's user, {' or '.join(sorted(self._users))}, "
                f"not as {user!r}"
            )
        env = dict(env or {})
        if cmd and cmd[0] == SANDBOX_CLI:
            env[TOOLS_VARIABLE] = f"{self._scratch}/tools"
            await self._serve_tools()
        name = f"{self._scratch}/{uuid.uuid4().hex}"
        mark, limit = uuid.uuid4().hex, SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        command = RUN.format(
            directory=shlex.quote(self._resolved(cwd or "")),
            exports="".join(f"export {_assignment(*each)} && " for each in env.items()),
            command=_joined(cmd),
            input=await self._stored(f"{name}.in", input),
            name=shlex.quote(name),
            mark=mark,
            inline=INLINE_BYTES,
            limit=limit,
        )
        ran = await _run(self._client, command, timeout, _joined(cmd))
        head, _, inline = ran.content.partition(mark)[2].partition("\n")
        if ran.exit_code == -1 or not head:
            out, err = await self._outputs(name, limit)
            if ran.exit_code != -1:
                raise SandboxUnavailableError(f"The shell ended early: {ran.content}{err}")
            timed_out = TimeoutError(f"Command timed out after {timeout} seconds")
            timed_out.truncated_output = out + err  # type: ignore[attr-defined]
            raise timed_out
        code, *sizes = map(int, head.split())
        if sum(sizes) <= INLINE_BYTES:
            out, _, err = inline.partition(mark)
        else:
            out, err = await self._outputs(name, limit)
        if max(sizes) > limit:
            raise OutputLimitExceededError(
                SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, out + err
            )
        if code == NOT_EXECUTABLE and "ermission denied" in err:
            raise PermissionError(errno.EACCES, err.strip(), cmd[0])
        return ExecResult(code == 0, code, out, err)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Store a file as it is.

        Args:
            file: Its path; missing directories are created.
            contents: The contents; text is stored in UTF-8.

        Raises:
            IsADirectoryError: The path is a directory.
            PermissionError: The file may not be written.
            OSError: It cannot be written for another reason.
        """
        data = contents.encode() if isinstance(contents, str) else contents
        try:
            await self._client.write_bytes(self._resolved(file), data)
        except TransferError as error:
            raise _os_error(error, file) from None

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        """Fetch a file as it is.

        Args:
            file: Its path.
            text: Return text instead of bytes.

        Returns:
            Its contents.

        Raises:
            FileNotFoundError: There is no such file.
            IsADirectoryError: The path is a directory.
            PermissionError: The file may not be read.
            UnicodeDecodeError: It is not text in UTF-8.
            OutputLimitExceededError: It is larger than Inspect's limit.
            OSError: It cannot be read for another reason.
        """
        limits = SandboxEnvironmentLimits
        try:
            data = await self._client.read_bytes(self._resolved(file), limits.MAX_READ_FILE_SIZE)
        except TransferTooLargeError:
            raise OutputLimitExceededError(limits.MAX_READ_FILE_SIZE_STR, None) from None
        except TransferError as error:
            raise _os_error(error, file) from None
        return data.decode() if text else data

    def default_polling_interval(self) -> float:
        """Seconds between Inspect's requests to its own tools."""
        return 0.2

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> BaseModel:
        """Read a configuration from one of Inspect's logs."""
        return OhSandboxConfig(**config)

    def _resolved(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._directory, path))

    async def _stored(self, path: str, input: str | bytes | None) -> str:
        """Store the input of a program; return the file to read it from."""
        if input is None:
            return "/dev/null"
        await self.write_file(path, input)
        return shlex.quote(path)

    async def _outputs(self, name: str, limit: int) -> tuple[str, str]:
        """Fetch and remove the outputs of a program; one above the limit is ""."""
        paths = f"{name}.out", f"{name}.err"
        try:
            out, err = [await self._output(path, limit) for path in paths]
        finally:
            await _run(self._client, shlex.join(["rm", "-f", f"{name}.in", *paths]))
        return out, err

    async def _output(self, path: str, limit: int) -> str:
        try:
            return (await self._client.read_bytes(path, limit)).decode(errors="replace")
        except (TransferNotFoundError, TransferTooLargeError):
            return ""

    async def _serve_tools(self) -> None:
        """Start the server of Inspect's tools, which would end with the command that starts it."""
        async with self._tools_lock:
            if self._tools is not None and not self._tools.done():
                return
            serve = SERVE_TOOLS.format(
                variable=TOOLS_VARIABLE, scratch=self._scratch, cli=SANDBOX_CLI
            )
            self._tools = asyncio.create_task(
                _run(self._client, serve, title=f"{SANDBOX_CLI} start-server")
            )
            ready = asyncio.create_task(_run(self._client, f"read <{self._scratch}/ready"))
            try:
                await asyncio.wait({self._tools, ready}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ready.cancel()
            if self._tools.done():
                raise SandboxUnavailableError(self._tools.result().content)


def _configured(config: SandboxEnvironmentConfigType | None) -> tuple[AsyncRuntimeClient, str]:
    """Return a client, and the working directory or ""."""
    if isinstance(config, str):
        config = OhSandboxConfig(directory=config)
    elif config is None:
        config = OhSandboxConfig()
    elif not isinstance(config, OhSandboxConfig):
        raise PrerequisiteError("Pass an OhSandboxConfig or a directory to the sandbox oh_jupyter")
    directory = config.directory or ""
    if directory and not directory.startswith("/"):
        raise PrerequisiteError(f"{directory} is not an absolute path on the kernel's machine")
    return connect("Inspect AI", config.url, kernel_id=config.kernel_id), directory


async def _run(
    client: AsyncRuntimeClient, command: str, timeout: float | None = None, title: str = ""
) -> CmdOutputObservation:
    """Run a command in a shell of its own; its exit code is -1 after the time limit."""
    try:
        observation = await run_command(client, command, timeout, title=title)
    except OhJupyterError as error:
        raise SandboxUnavailableError(str(error)) from error
    if isinstance(observation, CmdOutputObservation):
        return observation
    if isinstance(observation, UserRejectObservation):
        raise PermissionError(observation.content)
    raise SandboxUnavailableError(observation.content)


def _joined(cmd: list[str]) -> str:
    if not cmd or not cmd[0]:
        raise ValueError("cmd is empty: name a program")
    if any("\0" in part for part in cmd):
        raise ValueError("cmd contains a NUL character")
    return shlex.join(cmd)


def _assignment(name: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) or "\0" in value:
        raise ValueError(f"{name!r} cannot be an environment variable with the value {value!r}")
    return f"{name}={shlex.quote(value)}"


def _os_error(error: TransferError, file: str) -> OSError:
    """Return the error that Inspect expects for a failed transfer."""
    text = str(error)
    if isinstance(error, TransferNotFoundError):
        code = errno.ENOENT
    elif "is a directory" in text.lower():
        code = errno.EISDIR
    elif "may not be" in text or "denied" in text:
        code = errno.EACCES
    else:
        return OSError(f"{file}: {text}")
    return OSError(code, os.strerror(code), file)
