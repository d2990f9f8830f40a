"""The actions that wait for a person, in all kernels of a server."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oh_jupyter.background import thread_pool
from oh_jupyter.cli.address import find
from oh_jupyter.errors import OhJupyterError, ServerError

if TYPE_CHECKING:
    from oh_jupyter.server.running import RunningServer

MAX_THREADS = 16
READ_SECONDS = 30.0  # timeout for a kernel's list


@dataclass(frozen=True)
class KernelQuestions:
    """The waiting actions of one kernel.

    Attributes:
        place: Path of its notebook, or its id; "" for the kernel that the command names.
        option: Option of a command that names the kernel.
        waiting: The actions, as the server lists them.
        failure: Why the kernel has no list.
    """

    place: str
    option: str
    waiting: list[dict[str, Any]]
    failure: str = ""


def questions_elsewhere(options: argparse.Namespace) -> list[KernelQuestions]:
    """Return what waits in the other kernels of the server, if the options name no kernel."""
    server = find(options, options.notebook)
    base, _, below = server.url.partition("/oh_jupyter")
    if below:
        return []
    places = _places(base, server)
    if not places:
        return []
    with thread_pool(min(len(places), MAX_THREADS), "oh-waiting") as threads:
        kernels = list(threads.map(lambda place: _ask(base, server, *place), places))
    return [kernel for kernel in kernels if kernel.waiting or kernel.failure]


def _places(base: str, server: RunningServer) -> list[tuple[str, str, str]]:
    """Return id, name and option of each kernel except the default one."""
    notebooks = _get(server, f"{base}/oh_jupyter/notebooks")
    paths = {str(each["kernel_id"]): str(each["path"]) for each in notebooks}
    try:
        ids = [str(each["id"]) for each in _get(server, f"{base}/api/kernels")]
    except ServerError:  # a token may allow the notebooks only
        ids = list(paths)
    own = _get(server, f"{base}/oh_jupyter/server_info")["default_kernel"]
    return [
        (id, paths[id], f"--notebook {shlex.quote(paths[id])}")
        if id in paths
        else (id, f"kernel {id}", f"--url {base}/oh_jupyter/kernels/{id}")
        for id in ids
        if id != own
    ]


def _ask(base: str, server: RunningServer, id: str, name: str, option: str) -> KernelQuestions:
    try:
        waiting = _get(server, f"{base}/oh_jupyter/kernels/{id}/confirmations")
    except OhJupyterError as error:
        return KernelQuestions(name, option, [], str(error))
    return KernelQuestions(name, option, waiting)


def _get(server: RunningServer, address: str) -> Any:
    """Return the JSON at an address of a server, or raise ServerError."""
    import httpx

    from oh_jupyter.loopback import is_local
    from oh_jupyter.server.running import describe_failure

    try:
        response = httpx.get(
            address,
            headers=server.headers,
            timeout=READ_SECONDS,
            trust_env=not is_local(address),
        )
    except httpx.HTTPError as error:
        raise ServerError(f"{address} does not answer: {error!r}") from error
    if not response.is_success:
        failure = describe_failure(address, response.status_code, response.content)
        raise ServerError(failure, response.status_code)
    return response.json()
