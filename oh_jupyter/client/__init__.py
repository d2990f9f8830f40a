"""Clients of the server extension: Actions and Observations as objects, over HTTP.

::

    with RuntimeClient("http://127.0.0.1:8888", token) as runtime:
        print(runtime.execute(CmdRunAction("ls")).content)

``AsyncRuntimeClient`` has the same methods as coroutines. A ``Fleet`` distributes the items of a
task over several kernels, of a server or on the workers of an executor.
"""

from oh_jupyter.client.async_client import AsyncRuntimeClient
from oh_jupyter.client.fleet import (
    AsyncFleetKernels,
    Fleet,
    FleetEvent,
    FleetKernels,
    FleetResult,
    LostKernel,
)
from oh_jupyter.client.sync_client import RuntimeClient

__all__ = [
    "AsyncFleetKernels",
    "AsyncRuntimeClient",
    "Fleet",
    "FleetEvent",
    "FleetKernels",
    "FleetResult",
    "LostKernel",
    "RuntimeClient",
]
