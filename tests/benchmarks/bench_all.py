"""One table of figures, and a plot with machine and date: ``make bench [ARGS=--short]``.

Each figure stands beside its limit, which is measured in the same run: what the machine itself
needs for the same. A peer is measured where it is installed. Without ``--short`` the other
benchmarks run afterwards, each in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from itertools import count
from pathlib import Path

import bench_load
import bench_rest
import bench_shell
import psutil
from bench_editor import bare_edit
from figure import IDLE_LOAD, Cost, Figure, busy_machine, cost, plot, table

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.text.line_diff import changed_ranges
from oh_jupyter.errors import BrowserNotFoundError, EditorError
from oh_jupyter.events import CmdRunAction
from oh_jupyter.shell import BashSession

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "figures"
MIB = 1024 * 1024


def python_start(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def package() -> Iterator[Figure]:
    wheels = sorted((ROOT / "dist").glob("oh_jupyter-*.whl"))
    if wheels:
        yield Figure("wheel", "MB", wheels[-1].stat().st_size / 1e6)
    needed = importlib.metadata.requires("oh_jupyter") or []
    yield Figure("base dependencies", "", sum("extra ==" not in each for each in needed))


def starting(rounds: int) -> Iterator[Figure]:
    bare = cost(python_start("pass"), rounds)
    loaded = cost(python_start("import oh_jupyter"), rounds)
    peer = None
    if importlib.util.find_spec("browsergym"):
        peer = cost(python_start("import browsergym.core"), rounds).time_ms
    yield Figure.of("import oh_jupyter", loaded, bare, "python -c pass", peer, "browsergym.core")
    alone, loads = zip(*(bench_load.kernel_costs() for _ in range(rounds)), strict=True)
    kernel = bench_load.median(list(alone))
    load = bench_load.median([cost for cost in loads if cost is not None])
    yield Figure("%load_ext", "ms", load.seconds * 1000, kernel.seconds * 1000, "kernel's start")
    yield Figure(
        "%load_ext, memory", "MB", load.memory_bytes / 1e6, kernel.memory_bytes / 1e6, "the kernel"
    )


def shell(rounds: int, directory: str) -> Iterator[Figure]:
    bare = Cost(bench_shell.bare_terminal() * 1000, 0)
    peer = cost(lambda: subprocess.run(["bash", "-c", "true"], check=True), rounds).time_ms
    with BashSession(directory, env=bench_shell.ENV) as session:
        ours = cost(lambda: session.execute(CmdRunAction("true")), rounds * 10)
    yield Figure.of("a command", ours, bare, "a bare terminal", peer, "subprocess")


def editing(rounds: int, directory: str) -> Iterator[Figure]:
    path, other = Path(directory, "ours.txt"), Path(directory, "bare.txt")
    line = "a line of plain text that is not very long, but\n"
    for file in (path, other):
        file.write_text("first\n" + line * (MIB // len(line)))
    words = ["first", "other"]

    def edit() -> None:
        editor(command="str_replace", path=str(path), old_str=words[0], new_str=words[1])
        words.reverse()

    editor = FileEditor(workspace_root=directory)
    ours = cost(edit, rounds)
    bare = cost(lambda: bare_edit(other, lambda text: text.replace("first", "other", 1)), rounds)
    yield Figure.of("an edit of 1 MiB", ours, bare, "read, replace, write, fsync")


def many_edits(directory: str) -> Iterator[Figure]:
    """A thousand small edits of a file, and a thousand undos."""
    path, other = Path(directory, "many.txt"), Path(directory, "many_bare.txt")
    for file in (path, other):
        file.write_text("".join(f"line {number}\n" for number in range(1000)))
    editor, edits, bare_edits = FileEditor(workspace_root=directory), count(), count()

    def edit() -> None:
        old = f"line {next(edits)}\n"
        editor(command="str_replace", path=str(path), old_str=old, new_str=f"new {old}")

    def edit_bare() -> None:
        old = f"line {next(bare_edits)}\n"
        bare_edit(other, lambda text: text.replace(old, f"new {old}", 1))

    ours, bare = cost(edit, 999), cost(edit_bare, 999)
    yield Figure.of("each of 1,000 small edits", ours, bare, "read, replace, write, fsync")
    undone = cost(lambda: editor(command="undo_edit", path=str(path)), 999)
    yield Figure.of("each of 1,000 undos", undone, bare, "read, replace, write, fsync")


def reading(rounds: int, directory: str) -> Iterator[Figure]:
    """A text that is not there, lines of a large file, a large directory."""
    large = Path(directory, "large.txt")
    large.write_text("".join(f"{number} words of a line of text\n" for number in range(300_000)))
    editor = FileEditor(workspace_root=directory)

    def replace_nothing() -> None:
        with suppress(EditorError):
            editor(command="str_replace", path=str(large), old_str="5 word of\nx", new_str="")

    missing = cost(replace_nothing, rounds)
    bare = cost(lambda: "5 word of\nx" in large.read_text(), rounds)
    yield Figure.of("a replacement without a match, 9 MB", missing, bare, "read and search")
    lines = {"command": "view", "path": str(large), "view_range": [200_000, 200_002]}
    view = cost(lambda: editor(**lines), rounds)
    sed = ["sed", "-n", "200000,200002p;200002q", str(large)]
    bare = cost(lambda: subprocess.run(sed, stdout=subprocess.DEVNULL, check=True), rounds)
    yield Figure.of("three lines of 9 MB", view, bare, "sed -n")
    folder = Path(directory, "many")
    folder.mkdir()
    for number in range(10_000):
        (folder / str(number)).touch()
    view = cost(lambda: editor(command="view", path=str(folder)), rounds)
    yield Figure.of(
        "a directory of 10,000", view, cost(lambda: os.listdir(folder), rounds), "listdir"
    )


def diffing(directory: str) -> Iterator[Figure]:
    """A difference in each of a million lines."""
    files = [Path(directory, name) for name in ("old.json", "new.json")]
    for file, key in zip(files, ("value", "other"), strict=True):
        file.write_text("".join(f'{{"id": {n}, "{key}": {n % 7}}}\n' for n in range(1_000_000)))
    old, new = (file.read_text().splitlines() for file in files)
    ours = cost(lambda: deque(changed_ranges(old, new), maxlen=0), 2)
    command = ["diff", *map(str, files)]
    bare = cost(lambda: subprocess.run(command, stdout=subprocess.DEVNULL), 2)
    yield Figure.of("1,000,000 lines, all changed", ours, bare, "GNU diff")


def over_rest(rounds: int, directory: str) -> Iterator[Figure]:
    """Commands, cells and a megabyte over REST; memory of all processes."""
    server, bare_kernel = bench_rest.Server(directory), bench_rest.BareKernel()
    try:
        run = partial(server.act, bench_rest.action("run", command="echo hi"))
        run()
        server.act(bench_rest.action("run_ipython", code=bench_rest.ECHO_OPERATION))
        root = psutil.Process(server.process.pid)
        tree = [root, *root.children(recursive=True)]
        to_kernel = partial(server.post, f"{server.root}/kernel_echo", {})
        empty, floor = cost(to_kernel, rounds * 10, tree), "an empty request"
        yield Figure.of("run echo over REST", cost(run, rounds * 10, tree), empty, floor)
        cell = partial(server.act, bench_rest.action("run_ipython", code="1+1"))
        bare = cost(bare_kernel.cell, rounds * 10)
        yield Figure.of("1+1 over REST", cost(cell, rounds * 10, tree), bare, "a kernel's client")
        path = f"{directory}/megabyte.txt"
        body = {"content": bench_rest.MEGABYTE}
        echo = cost(partial(server.post, f"{server.root}/echo", body), rounds, tree)
        write = bench_rest.action("write", path=path, **body)
        yield Figure.of("write 1 MB", cost(partial(server.act, write), rounds, tree), echo, "echo")
        read = bench_rest.action("read", path=path)
        yield Figure.of("read 1 MB", cost(partial(server.act, read), rounds, tree), echo, "echo")
        view = bench_rest.action("read", path=path, start=500, end=550)
        ours = cost(partial(server.act, view), rounds * 10, tree)
        yield Figure.of("50 lines of 1 MB over REST", ours, empty, floor)
    finally:
        server.stop()
        bare_kernel.stop()


def machine() -> str:
    try:
        browser = Path(find_executable()).name
    except BrowserNotFoundError:
        browser = "no browser"
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {browser}; load {os.getloadavg()[0]:.1f}; "
        f"{datetime.date.today().isoformat()}"
    )


def main() -> None:
    """Measure, print, and write table and plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--short", action="store_true", help="few rounds, and this table alone")
    parser.add_argument("--busy", action="store_true", help="measure beside two busy processes")
    options = parser.parse_args()
    short, load = options.short, os.getloadavg()[0]
    if load > IDLE_LOAD and not options.busy:
        sys.exit(
            f"The load is {load:.1f}, so no figure would mean anything. Wait until it is below "
            f"{IDLE_LOAD}, or measure beside other work with --busy."
        )
    rounds = 3 if short else 15
    with busy_machine() if options.busy else nullcontext():
        measure_all(rounds, short, " beside two busy processes" if options.busy else "")


def measure_all(rounds: int, short: bool, condition: str) -> None:
    """Measure and write table and plot; run the other benchmarks unless ``short``."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ["FILE_STORE_PATH"] = f"{directory}/store"
        os.environ["XDG_STATE_HOME"] = f"{directory}/state"
        figures = [
            *package(),
            *starting(rounds),
            *shell(rounds, directory),
            *editing(rounds, directory),
            *many_edits(directory),
            *reading(rounds, directory),
            *diffing(directory),
            *over_rest(rounds, directory),
        ]
    TARGET.mkdir(parents=True, exist_ok=True)
    title = machine() + condition
    text = f"{table(figures)}\n\n{title}\n"
    print(text)
    name = "busy" if condition else "table"
    (TARGET / f"{name}.txt").write_text(text, "utf-8")
    if not condition:
        (TARGET / "plot.svg").write_text(plot(figures, title), "utf-8")
    print(f"Written to {TARGET.relative_to(ROOT)}", flush=True)
    for script in [] if short else sorted(Path(__file__).parent.glob("bench_*.py")):
        if script != Path(__file__):
            print(f"\n== {script.name}", flush=True)
            subprocess.run([sys.executable, script], check=False)


if __name__ == "__main__":
    main()
