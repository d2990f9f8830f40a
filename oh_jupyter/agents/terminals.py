"""Commands that an agent runs with ``terminal/*``: our children, logged like any other."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from oh_jupyter.agents.children import END_GRACE_SECONDS, THREAD_NAME, InThread, start_child
from oh_jupyter.background import start_thread
from oh_jupyter.config import OUTPUT_LIMIT
from oh_jupyter.events import CmdOutputMetadata, CmdOutputObservation, CmdRunAction, Observation
from oh_jupyter.installed import find_program
from oh_jupyter.process import PIPE, Child
from oh_jupyter.sandbox.profile import allowed_environment

if TYPE_CHECKING:
    from typing import IO

    from oh_jupyter.sandbox import Box

MAX_OUTPUT_BYTES = 1024**2
"""Output that is kept of a command if the agent sets no limit."""

OUTPUT_GRACE_SECONDS = 1.0
"""Wait for the output of an ended command, which a background job may hold open."""

READ_BYTES = 65536


def command_line(command: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return a command as shown and as started: a whole line goes through a shell."""
    if arguments:
        return shlex.join([command, *arguments]), [command, *arguments]
    if os.name == "nt":
        return command, ["powershell", "-NoProfile", "-Command", command]
    return command, [find_program("bash") or "/bin/sh", "-c", command]


class AgentTerminal:
    """One command of an agent, and its Action in the log."""

    def __init__(
        self,
        action: CmdRunAction,
        argv: Sequence[str],
        env: Mapping[str, str],
        byte_limit: int | None,
        in_thread: InThread,
        box_of: Callable[[CmdRunAction], Awaitable[Box | None]],
    ) -> None:
        self.action = action
        self.started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.truncated = False
        self.returncode: int | None = None
        self._argv, self._env = list(argv), dict(env)
        self._byte_limit = MAX_OUTPUT_BYTES if byte_limit is None else byte_limit
        self._in_thread = in_thread
        self._box_of = box_of
        self._output = b""
        self._child: Child | None = None

    @property
    def output(self) -> str:
        """Output so far, or its end."""
        return self._output.decode(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """Exit status; None while it runs or if a signal ended it."""
        return None if self.returncode is None or self.returncode < 0 else self.returncode

    @property
    def signal_name(self) -> str | None:
        """The signal that ended it, or None."""
        if self.returncode is None or self.returncode >= 0:
            return None
        try:
            return signal.Signals(-self.returncode).name
        except ValueError:
            return str(-self.returncode)

    async def run(self) -> Observation:
        """Run the command to its end; raise ChildStartError if it cannot start."""
        argv, env = self._argv, self._env
        box = await self._box_of(self.action)
        if box is not None:
            argv, _ = box.enclose(argv, self.action.cwd or "/", [])
            env = allowed_environment(env)
        self._child = child = await start_child(
            self._in_thread,
            argv,
            cwd=self.action.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=PIPE,
            stderr=subprocess.STDOUT,
        )
        if box is not None:
            box.limit_processes(child.pid)
        loop, exited = asyncio.get_running_loop(), asyncio.Event()
        if not self.started.done():
            self.started.set_result(None)

        def watch() -> None:
            reader = start_thread(self._read, THREAD_NAME, child.stdout)
            self.returncode = child.wait()
            reader.join(OUTPUT_GRACE_SECONDS)
            with suppress(RuntimeError):  # the loop may be closed
                loop.call_soon_threadsafe(exited.set)
            child.terminate(END_GRACE_SECONDS)
            reader.join()

        start_thread(watch, THREAD_NAME)
        try:
            await exited.wait()
        finally:
            child.begin_termination(END_GRACE_SECONDS)
            self.ended.set()
        code = self.returncode if self.returncode is not None else -1
        metadata = CmdOutputMetadata(exit_code=code, working_dir=self.action.cwd)
        content = self.output[-OUTPUT_LIMIT:]
        return CmdOutputObservation(content, command=self.action.command, metadata=metadata)

    def kill(self) -> None:
        """Start ending the command and all of its descendants."""
        if self._child is not None:
            self._child.begin_termination(END_GRACE_SECONDS)

    def _read(self, pipe: IO[bytes]) -> None:
        with pipe, suppress(OSError, ValueError):
            while chunk := pipe.read1(READ_BYTES):  # type: ignore[attr-defined]
                output = self._output + chunk
                self.truncated = self.truncated or len(output) > self._byte_limit
                self._output = output[max(0, len(output) - self._byte_limit) :]
