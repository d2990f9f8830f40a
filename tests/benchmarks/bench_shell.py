"""Cost of the shell session, as ratios to baselines of the same run.

Run it with ``python tests/benchmarks/bench_shell.py``.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from jupyter_client.manager import start_new_kernel

from oh_jupyter.boxed_kernel import KERNEL_NAME, install_kernelspec
from oh_jupyter.events import CmdRunAction
from oh_jupyter.process import spawn
from oh_jupyter.sandbox import Box, find_engine, make_profile
from oh_jupyter.sandbox.profile import Network
from oh_jupyter.shell import BashSession
from oh_jupyter.shell.screen import render

ROUNDS = 500
ENV = {"HOME": "/nonexistent", "PATH": os.environ["PATH"]}


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def median(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median of many calls, in seconds."""
    for _ in range(min(rounds, 10)):
        call()
    return statistics.median(seconds(call) for _ in range(rounds))


def bare_terminal() -> float:
    """A command written to a bash on a terminal, and its output read up to the next prompt."""
    master, slave = os.openpty()
    modes = termios.tcgetattr(slave)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    child = spawn(
        ["bash", "--norc", "--noediting", "-i"],
        env={**ENV, "PS1": "#"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        controlling_terminal=slave,
    )

    def read() -> None:
        while not os.read(master, 4096).endswith(b"#"):
            pass

    def command() -> None:
        os.write(master, b"true\n")
        read()

    read()
    try:
        return median(command)
    finally:
        child.terminate()
        os.close(master)
        os.close(slave)


async def asyncio_face(directory: str) -> tuple[float, float]:
    """Median of ``true`` and of an external program on one event loop, in seconds."""
    session = BashSession(directory, env=ENV)
    await session.initialize_async()
    medians = []
    for command in ("true", "/bin/true"):
        times = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            await session.execute_async(CmdRunAction(command))
            times.append(time.perf_counter() - started)
        medians.append(statistics.median(times))
    await session.close_async()
    return medians[0], medians[1]


def sandboxed(directory: str) -> Iterator[tuple[str, float, float, str]]:
    """Yield the rows of a box: its start, and commands in it, over those of the plain shell.

    Plain and boxed calls alternate, so that both see the same load.
    """
    engine = find_engine()
    if engine.program is None:
        print(f"No sandbox: {engine.sentence}")
        return

    def start(network: Network | None) -> float:
        began = time.perf_counter()
        box = None
        if network is not None:
            box = Box(make_profile(directory, homes=[ENV["HOME"]], network=network), engine)
        session = BashSession(directory, env=ENV, enclosure=box)
        session.initialize()
        took = time.perf_counter() - began
        session.close()
        if box is not None:
            box.close()
        return took

    starts = [(start(None), start("none"), start("proxy")) for _ in range(20)]
    plain, boxed, proxied = (statistics.median(column) for column in zip(*starts, strict=True))
    yield "start of a box, added", boxed - plain, plain, "start of the plain shell"
    yield "start of a box with a proxy, added", proxied - plain, plain, "start of the plain shell"
    box = Box(make_profile(directory, homes=[ENV["HOME"]]), engine)
    with (
        BashSession(directory, env=ENV) as outside,
        BashSession(directory, env=ENV, enclosure=box) as inside,
    ):
        for command in ("true", "/bin/true"):
            calls = [partial(each.execute, CmdRunAction(command)) for each in (outside, inside)]
            pairs = [(seconds(calls[0]), seconds(calls[1])) for _ in range(ROUNDS)]
            plain, boxed = (statistics.median(column) for column in zip(*pairs, strict=True))
            yield f"{command} in a box", boxed, plain, "the same in the plain shell"
    box.close()


def boxed_kernel(directory: str) -> Iterator[tuple[str, float, float, str]]:
    """Yield the row of a sandboxed kernel: its start, over that of the plain one."""
    if find_engine().program is None:
        return
    install_kernelspec(prefix=directory)
    os.environ["JUPYTER_PATH"] = os.path.join(directory, "share", "jupyter")
    work = os.path.join(directory, "work")
    os.mkdir(work)

    def start(name: str) -> float:
        began = time.perf_counter()
        manager, client = start_new_kernel(kernel_name=name, cwd=work)
        took = time.perf_counter() - began
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        return took

    starts = [(start("python3"), start(KERNEL_NAME)) for _ in range(10)]
    plain, boxed = (statistics.median(column) for column in zip(*starts, strict=True))
    yield "start of a boxed kernel, added", boxed - plain, plain, "start of the plain kernel"


def main() -> None:
    """Print every figure."""
    rows: list[tuple[str, float, float, str]] = []
    with tempfile.TemporaryDirectory() as directory:
        bare = bare_terminal()
        direct, program = asyncio.run(asyncio_face(directory))
        fork = median(lambda: subprocess.run(["/bin/true"], check=True), 100)
        rows.append(("true, asyncio face", direct, bare, "bare terminal write/read"))
        rows.append(("/bin/true, asyncio face", program, fork, "subprocess.run"))

        text = "".join(f"line {n} of plain text without much in it\n" for n in range(25_000))
        data = (text * 2)[: 1024 * 1024].encode()
        Path(directory, "1mb").write_bytes(data)
        pipe = median(lambda: subprocess.run(["cat", f"{directory}/1mb"], capture_output=True), 20)
        cleaning = median(lambda: render(data), 20)
        long = "echo '" + "x" * 8_000_000 + "' | wc -c"
        Path(directory, "long.sh").write_text(long)
        script = median(lambda: subprocess.run(["bash", "long.sh"], cwd=directory, env=ENV), 3)
        with BashSession(directory, env=ENV) as session:
            typed = median(lambda: session.execute(CmdRunAction(long, blocking=True)), 3)
            rows.append(("8 MB of command", typed, script, "the same as a script"))
            threaded = median(lambda: session.execute(CmdRunAction("true")))
            rows.append(("true, blocking face", threaded, bare, "bare terminal write/read"))
            much = median(lambda: session.execute(CmdRunAction("cat 1mb")), 20)
            baseline = 2 * pipe + cleaning
            rows.append(("1 MB of output", much, baseline, "2 x cat through a pipe + cleaning"))
            huge = seconds(lambda: session.execute(CmdRunAction("yes | head -c 100000000")))
            rows.append(("100 MB of output", huge, 100 * pipe, "100 x cat of 1 MB"))
        rows += sandboxed(directory)
        rows += boxed_kernel(directory)
        start = median(lambda: spawn(["/bin/true"]).terminate(), 20)
        rows.append(("start and end of a child", start, fork, "subprocess.run"))
    for name, value, baseline, what in rows:
        print(
            f"{name:26} {value * 1000:9.3f} ms = {value / baseline:6.2f} x {what} "
            f"({baseline * 1000:.3f} ms)"
        )


if __name__ == "__main__":
    main()
