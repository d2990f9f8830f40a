"""The kernel for requests that name none: its start, and retries after failures.

A kernel that dies before its first reply is started again at once: another process may have taken
the ports that Jupyter chose for it. A second death is an error with a reason, and each further
attempt waits longer. Jupyter alone would restart it six times, and begin again at each request.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from jupyter_server.gateway.managers import GatewayMappingKernelManager

from oh_jupyter.config import Settings
from oh_jupyter.errors import KernelDiedError, KernelError

MAX_PAUSE_SECONDS = 60.0  # longest pause between two attempts; the first is one second


class DefaultKernel:
    """Starts the default kernel; ``id`` is None while there is none."""

    def __init__(
        self,
        kernel_manager: Any,
        *,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        path: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take the kernelspec, and the path to start it in, relative to the server's root."""
        self.id: str | None = None
        self.settings = dict(settings or {})
        self._kernels = kernel_manager
        self._remote = isinstance(kernel_manager, GatewayMappingKernelManager)
        self._name = name
        self._path = path
        self._clock = clock
        self.failures = 0  # consecutive deaths before the first reply
        self._problem = ""
        self._not_before = 0.0

    async def start(self, *, retry: bool = False) -> str:
        """Start it and return its id, or raise KernelError if it fails or has just died."""
        pause_seconds = self._not_before - self._clock()
        if pause_seconds > 0 and not (retry and self.failures == 1):
            raise self._died(pause_seconds)
        try:
            self.id = await self._kernels.start_kernel(path=self._path, **await self._arguments())
        except Exception as error:
            name = self._name or "the server's default"
            raise KernelError(f"The default kernel ({name}) cannot be started: {error}") from None
        return self.id

    async def start_another(self, cwd: str) -> str:
        """Start a kernel with the same arguments; return its id, or raise KernelError."""
        directory = {"cwd": cwd} if cwd and not self._remote else {"path": self._path}
        try:
            return str(await self._kernels.start_kernel(**directory, **await self._arguments()))
        except Exception as error:
            raise KernelError(
                f"A kernel in {cwd or 'the workspace'} cannot be started: {error}"
            ) from None

    async def _arguments(self) -> dict[str, Any]:
        if self._remote:
            # A gateway passes no arguments on to its kernels, and the server would log them.
            if self._name is None:  # this tells the server the gateway's default
                await self._kernels.kernel_spec_manager.get_all_specs()
            return {"kernel_name": self._name or self._kernels.default_kernel_name}
        arguments: dict[str, Any] = {
            "kernel_name": self._name or self._kernels.default_kernel_name,
            "extra_arguments": ["--ext", "oh_jupyter", *_arguments(self.settings)],
        }
        if secrets := _secrets(self.settings):
            arguments["env"] = {**os.environ, **secrets}
        return arguments

    def answered(self) -> None:
        """Reset the failures after a reply."""
        self.failures = 0

    def failed(self, how: str) -> KernelDiedError:
        """Note a death before the first reply, e.g. "ended with exit code 1"; return the error."""
        self.id = None
        self.failures += 1
        times = "" if self.failures == 1 else f", {self.failures} times in a row"
        where = "gateway" if self._remote else "server"
        self._problem = (
            f"The default kernel ({self._name or self._kernels.default_kernel_name}) {how} before "
            f"it answered anything{times}. Its output is in the {where}'s log; fix its kernelspec, "
            "or choose another with c.OhJupyter.default_kernel_name"
        )
        pause_seconds = min(2.0 ** (self.failures - 1), MAX_PAUSE_SECONDS)
        self._not_before = self._clock() + pause_seconds
        return self._died(pause_seconds)

    def _died(self, pause_seconds: float) -> KernelDiedError:
        seconds = math.ceil(pause_seconds)
        return KernelDiedError(f"{self._problem}. The next attempt is possible in {seconds} s")


def _arguments(settings: Mapping[str, Any]) -> list[str]:
    """Return the settings for a command line, which everybody can read: without secrets."""
    return [
        f"--OhJupyter.{name}={list(value) if isinstance(value, tuple) else value}"
        for name, value in settings.items()
        if not _metadata(name)["secret"]
    ]


def _secrets(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the secret settings as environment variables."""
    return {
        _metadata(name)["variables"][0]: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
        if _metadata(name)["secret"]
    }


def _metadata(name: str) -> Mapping[str, Any]:
    return Settings.__dataclass_fields__[name].metadata
