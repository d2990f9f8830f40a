"""The kernel for requests that name none: how it is started, and what if it does not start.

A kernel that dies before it has answered anything is started once more at once: another process
may have taken the ports that Jupyter chose for it. If it dies again, it would go on so. Jupyter
would start it six times and give it up, and the next request would begin anew. So such a death is
an error with a reason, and the next attempt waits: longer after each.
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

MAX_PAUSE_SECONDS = 60.0
"""Time between two attempts, at most; after the first failure it is a second."""


class DefaultKernel:
    """Starts the default kernel, whose ``id`` is None while there is none."""

    def __init__(
        self,
        kernel_manager: Any,
        *,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        path: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without one; it is started in a path relative to the server's root."""
        self.id: str | None = None
        self.settings = dict(settings or {})
        self._kernels = kernel_manager
        self._remote = isinstance(kernel_manager, GatewayMappingKernelManager)
        self._name = name
        self._path = path
        self._clock = clock
        self._failures = 0
        self._problem = ""
        self._not_before = 0.0

    @property
    def failures(self) -> int:
        """How often in a row it died before it answered anything."""
        return self._failures

    async def start(self, *, retry: bool = False) -> str:
        """Start it; its id. A KernelError if it cannot be, or died a moment ago."""
        pause_seconds = self._not_before - self._clock()
        if pause_seconds > 0 and not (retry and self._failures == 1):
            raise self._died(pause_seconds)
        try:
            self.id = await self._kernels.start_kernel(path=self._path, **await self._arguments())
        except Exception as problem:
            name = self._name or "the server's default"
            raise KernelError(f"The default kernel ({name}) cannot be started: {problem}") from None
        return self.id

    async def _arguments(self) -> dict[str, Any]:
        if self._remote:
            # A gateway passes nothing on to its kernels; the server would log it, though.
            if self._name is None:  # by this the server learns which one is the gateway's default
                await self._kernels.kernel_spec_manager.get_all_specs()
            return {"kernel_name": self._name or self._kernels.default_kernel_name}
        given = ["--ext", "oh_jupyter", *_arguments(self.settings)]
        arguments: dict[str, Any] = {
            "kernel_name": self._name or self._kernels.default_kernel_name,
            "extra_arguments": given,
        }
        if secrets := _secrets(self.settings):
            arguments["env"] = {**os.environ, **secrets}
        return arguments

    def answered(self) -> None:
        """It has answered: what was before is forgotten."""
        self._failures = 0

    def failed(self, how: str) -> KernelDiedError:
        """It died before it answered anything, as in "ended with exit code 1"; what to tell."""
        self.id = None
        self._failures += 1
        times = "" if self._failures == 1 else f", {self._failures} times in a row"
        where = "gateway" if self._remote else "server"
        self._problem = (
            f"The default kernel ({self._name or self._kernels.default_kernel_name}) {how} before "
            f"it answered anything{times}. What it said is in the {where}'s log; mend its "
            "kernelspec, or choose another by c.OhJupyter.default_kernel_name"
        )
        pause_seconds = min(2.0 ** (self._failures - 1), MAX_PAUSE_SECONDS)
        self._not_before = self._clock() + pause_seconds
        return self._died(pause_seconds)

    def _died(self, pause_seconds: float) -> KernelDiedError:
        seconds = math.ceil(pause_seconds)
        return KernelDiedError(f"{self._problem}. The next attempt may be in {seconds} s")


def _arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as a kernel's command line takes them, which everybody may read: no secrets."""
    return [
        f"--OhJupyter.{name}={list(value) if isinstance(value, tuple) else value}"
        for name, value in settings.items()
        if not _metadata(name)["secret"]
    ]


def _secrets(settings: Mapping[str, Any]) -> dict[str, str]:
    """The secret ones, as environment variables."""
    return {
        _metadata(name)["variables"][0]: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
        if _metadata(name)["secret"]
    }


def _metadata(name: str) -> Mapping[str, Any]:
    return Settings.__dataclass_fields__[name].metadata
