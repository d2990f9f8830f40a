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
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import bench_load
import bench_shell
from bench_editor import bare_edit

from oh_jupyter.browser.executable import find_executable
from oh_jupyter.editor import FileEditor
from oh_jupyter.errors import BrowserNotFoundError
from oh_jupyter.events import CmdRunAction
from oh_jupyter.shell import BashSession

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs" / "figures"
MIB = 1024 * 1024
ROW_HEIGHT = 26


class Figure(NamedTuple):
    """A cost, what the machine itself needs, and what a peer needs; None if there is none."""

    name: str
    unit: str
    ours: float
    limit: float | None = None
    limit_name: str = ""
    peer: float | None = None
    peer_name: str = ""


def milliseconds(call: Callable[[], object], rounds: int) -> float:
    call()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def python_start(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def package() -> Iterator[Figure]:
    wheels = sorted((ROOT / "dist").glob("oh_jupyter-*.whl"))
    if wheels:
        yield Figure("wheel", "MB", wheels[-1].stat().st_size / 1e6)
    needed = importlib.metadata.requires("oh_jupyter") or []
    yield Figure("base dependencies", "", sum("extra ==" not in each for each in needed))


def starting(rounds: int) -> Iterator[Figure]:
    bare = milliseconds(python_start("pass"), rounds)
    loaded = milliseconds(python_start("import oh_jupyter"), rounds)
    peer = None
    if importlib.util.find_spec("browsergym"):
        peer = milliseconds(python_start("import browsergym.core"), rounds)
    yield Figure("import oh_jupyter", "ms", loaded, bare, "python -c pass", peer, "browsergym.core")
    alone, loads = zip(*(bench_load.kernel_costs() for _ in range(rounds)), strict=True)
    kernel = bench_load.median(list(alone))
    load = bench_load.median([cost for cost in loads if cost is not None])
    yield Figure("%load_ext", "ms", load.seconds * 1000, kernel.seconds * 1000, "kernel's start")
    yield Figure(
        "%load_ext, memory", "MB", load.memory_bytes / 1e6, kernel.memory_bytes / 1e6, "the kernel"
    )


def shell(rounds: int, directory: str) -> Iterator[Figure]:
    bare = bench_shell.bare_terminal() * 1000
    peer = milliseconds(lambda: subprocess.run(["bash", "-c", "true"], check=True), rounds)
    with BashSession(directory, env=bench_shell.ENV) as session:
        ours = milliseconds(lambda: session.execute(CmdRunAction("true")), rounds * 10)
    yield Figure("a command", "ms", ours, bare, "a bare terminal", peer, "subprocess")


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
    ours = milliseconds(edit, rounds)
    bare = milliseconds(
        lambda: bare_edit(other, lambda text: text.replace("first", "other", 1)), rounds
    )
    yield Figure("an edit of 1 MiB", "ms", ours, bare, "read, replace, write, fsync")


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


def shown(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.2f} {unit}".strip()


def table(figures: list[Figure]) -> str:
    rows = [("", "ours", "limit", "", "peer", "")]
    rows += [
        (
            *(each.name, shown(each.ours, each.unit), shown(each.limit, each.unit)),
            *(each.limit_name if each.limit is not None else "", shown(each.peer, each.unit)),
            each.peer_name if each.peer is not None else "",
        )
        for each in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if column in (1, 2, 4) else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def plot(figures: list[Figure], title: str) -> str:
    """Bars as SVG: how many times its limit each figure is."""
    compared = [(each, each.ours / each.limit) for each in figures if each.limit]
    longest = max(ratio for _, ratio in compared)
    height = ROW_HEIGHT * (len(compared) + 2)
    bars = [
        f'<text x="4" y="{y + 13}">{escape(each.name)}</text>'
        f'<rect x="180" y="{y}" width="{max(2, 320 * ratio / longest):.0f}" height="16"/>'
        f'<text x="{188 + max(2, 320 * ratio / longest):.0f}" y="{y + 13}">'
        f"{ratio:.2f} x {escape(each.limit_name)}</text>"
        for y, (each, ratio) in zip(range(ROW_HEIGHT, height, ROW_HEIGHT), compared, strict=False)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" '
        'font-family="sans-serif" font-size="13" fill="#4477aa">'
        f'{"".join(bars)}<text x="4" y="{height - 8}" font-size="11">{escape(title)}</text></svg>\n'
    )


def main() -> None:
    """Measure, print, and write table and plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--short", action="store_true", help="few rounds, and this table alone")
    short = parser.parse_args().short
    rounds = 3 if short else 15
    with tempfile.TemporaryDirectory() as directory:
        os.environ["FILE_STORE_PATH"] = f"{directory}/store"
        os.environ["XDG_STATE_HOME"] = f"{directory}/state"
        figures = [
            *package(),
            *starting(rounds),
            *shell(rounds, directory),
            *editing(rounds, directory),
        ]
    TARGET.mkdir(parents=True, exist_ok=True)
    found = f"{table(figures)}\n\n{machine()}\n"
    print(found)
    (TARGET / "table.txt").write_text(found, "utf-8")
    (TARGET / "plot.svg").write_text(plot(figures, machine()), "utf-8")
    print(f"Written to {TARGET.relative_to(ROOT)}", flush=True)
    for script in [] if short else sorted(Path(__file__).parent.glob("bench_*.py")):
        if script != Path(__file__):
            print(f"\n== {script.name}", flush=True)
            subprocess.run([sys.executable, script], check=False)


if __name__ == "__main__":
    main()
