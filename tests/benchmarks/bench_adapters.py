"""Cells and commands a second through each adapter, beside its framework's own local executor.

Run it with the frameworks beside the environment, where ``scripts/check --all`` installs them::

    PYTHONPATH=$(echo .venv-adapters/lib/python*/site-packages) \
        python tests/benchmarks/bench_adapters.py [--clients 1 4 16 64] [--kernels 1] [--seconds 5]

Each client has an adapter of its own; the clients share the kernels, which run one cell at a time
and any number of commands. A framework that is not installed is left out. The last column has the
kernels that fit into a GiB after the run: their memory and that of their children, without what
they share. The upstream executors run in this process, without a log, approvals or undo.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path

from bench_scale import private_mib, processes

from oh_jupyter.client import Fleet
from oh_jupyter.testing import LiveServer, run_server

Operation = Callable[[], Awaitable[object]]
Opener = Callable[[LiveServer | None, str, AsyncExitStack], Awaitable[Operation]]
"""Make a client of a kernel, or of the framework's own executor without a server."""

THREADS = ThreadPoolExecutor(256)
CELL = "x = 1 + 1\nx"


def in_thread(call: Callable[[], object]) -> Operation:
    """Return a blocking call as an operation."""
    return lambda: asyncio.get_running_loop().run_in_executor(THREADS, call)


async def smolagents(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Cells of smolagents."""
    if server is None:
        from smolagents.local_python_executor import LocalPythonExecutor

        local = LocalPythonExecutor([])
        local.send_tools({})
        return in_thread(lambda: local(CELL))
    from oh_jupyter.adapters.smolagents import OhExecutor

    executor = OhExecutor(server.url, server.token, kernel)
    stack.callback(executor.cleanup)
    return in_thread(lambda: executor(CELL))


async def deepagents(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Commands of deepagents."""
    if server is None:
        from deepagents.backends.local_shell import LocalShellBackend

        local = LocalShellBackend(tempfile.gettempdir())
        return in_thread(lambda: local.execute("true"))
    from oh_jupyter.adapters.deepagents import OhSandbox

    sandbox = stack.enter_context(OhSandbox(server.url, server.token, kernel))
    return lambda: sandbox.aexecute("true")


async def inspect_ai(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Commands of Inspect AI."""
    if server is None:
        from inspect_ai.util._sandbox.local import LocalSandboxEnvironment

        environments = await LocalSandboxEnvironment.sample_init("bench", None, {})
        stack.push_async_callback(
            LocalSandboxEnvironment.sample_cleanup, "bench", None, environments, False
        )
    else:
        from oh_jupyter.adapters.inspect_ai import OhSandboxConfig, OhSandboxEnvironment

        os.environ["OH_TOKEN"] = server.token
        config = OhSandboxConfig(url=server.url, kernel_id=kernel)
        environments = await OhSandboxEnvironment.sample_init("bench", config, {})
        stack.push_async_callback(
            OhSandboxEnvironment.sample_cleanup, "bench", config, environments, False
        )
    sandbox = environments["default"]
    return lambda: sandbox.exec(["true"], concurrency=False)


async def openai_agents(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Commands of the OpenAI Agents SDK, which has no local executor of its own."""
    from agents.run_context import RunContextWrapper
    from agents.tool import ShellActionRequest, ShellCallData, ShellCommandRequest

    if server is None:
        raise NotImplementedError
    from oh_jupyter.adapters.openai_agents import OhWorkspace

    workspace = stack.enter_context(OhWorkspace(server.url, server.token, kernel))
    data = ShellCallData("1", ShellActionRequest(["true"]))
    request = ShellCommandRequest(RunContextWrapper(None), data)
    return lambda: workspace.run_commands(request)


async def e2b(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Cells of E2B's client, whose own machines are in the cloud."""
    from e2b_code_interpreter import AsyncSandbox

    if server is None:
        raise NotImplementedError
    address = f"{server.url}/oh_jupyter/kernels/{kernel}/e2b"
    os.environ |= {"E2B_API_URL": address, "E2B_SANDBOX_URL": address, "E2B_API_KEY": server.token}
    sandbox = await AsyncSandbox.create()
    stack.push_async_callback(sandbox.kill)
    return lambda: sandbox.run_code(CELL)


async def harbor(server: LiveServer | None, kernel: str, stack: AsyncExitStack) -> Operation:
    """Commands of Harbor, whose own environments are containers."""
    from harbor.models.task.config import EnvironmentConfig
    from harbor.models.trial.paths import TrialPaths

    from oh_jupyter.adapters.harbor import OhEnvironment

    if server is None:
        raise NotImplementedError
    os.environ["OH_TOKEN"] = server.token
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
    (folder / "environment").mkdir()
    environment = OhEnvironment(
        environment_dir=folder / "environment",
        environment_name="bench",
        session_id=folder.name,
        trial_paths=TrialPaths(trial_dir=folder / "trial"),
        task_env_config=EnvironmentConfig(),
        oh_url=server.url,
        oh_kernel_id=kernel,
    )
    await environment.start(False)
    stack.push_async_callback(environment.stop, True)
    return lambda: environment.exec("true")


OPENERS: dict[str, tuple[str, Opener]] = {
    "smolagents": ("cells", smolagents),
    "deepagents": ("commands", deepagents),
    "inspect_ai": ("commands", inspect_ai),
    "openai_agents": ("commands", openai_agents),
    "e2b": ("cells", e2b),
    "harbor": ("commands", harbor),
}


async def rate(operations: list[Operation], seconds: float) -> float:
    """Return the operations a second that all clients complete together."""

    async def work(operation: Operation) -> int:
        count = 0
        while time.perf_counter() < end:
            await operation()
            count += 1
        return count

    await asyncio.gather(*(operation() for operation in operations))  # connections, imports
    start = time.perf_counter()
    end = start + seconds
    counts = await asyncio.gather(*map(work, operations))
    return sum(counts) / (time.perf_counter() - start)


async def rates(
    opener: Opener, server: LiveServer | None, kernels: list[str], wanted: argparse.Namespace
) -> list[float]:
    """Return the rate of each number of clients."""
    measured = []
    for count in wanted.clients:
        async with AsyncExitStack() as stack:
            operations = [
                await opener(server, kernels[number % len(kernels)], stack)
                for number in range(count)
            ]
            measured.append(await rate(operations, wanted.seconds))
    return measured


async def measure(name: str, wanted: argparse.Namespace, directory: Path) -> list[str]:
    """Return the rows of a framework."""
    unit, opener = OPENERS[name]

    def row(executor: str, figures: list[float], last: str) -> str:
        return f"{name:14}{unit:10}{executor:10}" + "".join(f"{n:9.1f}" for n in figures) + last

    try:
        rows = [row("upstream", await rates(opener, None, [""], wanted), f"{'-':>10}")]
    except NotImplementedError:
        rows = [f"{name:14}{unit:10}upstream  none"]
    except ImportError as error:
        return [f"{name:14}not measured: {error}"]
    with run_server(directory) as server:
        async with Fleet(server.url, server.token, wanted.kernels) as kernels:
            figures = await rates(opener, server, list(kernels.kernel_ids), wanted)
            memory = private_mib(processes(server)[1]) / wanted.kernels
    return [*rows, row("ours", figures, f"{1024 / memory:10.1f}")]


def main() -> None:
    """Measure each framework, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--kernels", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", choices=OPENERS, nargs="+", default=list(OPENERS))
    wanted = parser.parse_args()
    clients = "".join(f"{count:9}" for count in wanted.clients)
    print(f"{'a second, with clients:':34}{clients}   kernels/GiB")
    for name in wanted.only:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
            for line in asyncio.run(measure(name, wanted, Path(directory))):
                print(line, flush=True)


if __name__ == "__main__":
    main()
