"""Figures beside their limits: how they are measured, and a table and a plot of them."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import NamedTuple

import psutil

ROW_HEIGHT = 26
BUSY_PROCESSES = 2
IDLE_LOAD = 0.5


class Cost(NamedTuple):
    """Cost of a call: median of its time, and mean of all processes' processor time."""

    time_ms: float
    cpu_ms: float


class Figure(NamedTuple):
    """A cost, what the machine itself needs, and what a peer needs; None if there is none."""

    name: str
    unit: str
    ours: float
    limit: float | None = None
    limit_name: str = ""
    peer: float | None = None
    peer_name: str = ""
    cpu_ms: float | None = None

    @classmethod
    def of(
        cls,
        name: str,
        ours: Cost,
        limit: Cost,
        limit_name: str,
        peer: float | None = None,
        peer_name: str = "",
    ) -> Figure:
        """Return the row of a call beside the call that is its limit."""
        return cls(
            name, "ms", ours.time_ms, limit.time_ms, limit_name, peer, peer_name, ours.cpu_ms
        )


def cost(call: Callable[[], object], rounds: int, processes: Sequence[psutil.Process] = ()) -> Cost:
    """Measure a call, with the processor time of this process, its children and others."""
    call()
    times = []
    before = _cpu_seconds(processes)
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    cpu = _cpu_seconds(processes) - before
    return Cost(statistics.median(times) * 1000, cpu * 1000 / rounds)


def _cpu_seconds(processes: Sequence[psutil.Process]) -> float:
    used = sum(os.times()[:4])
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:2])
    return used


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """Keep two processes computing during the block, as people's machines do."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY_PROCESSES)
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def shown(value: float | None, unit: str) -> str:
    """Return a value with its unit, or nothing."""
    return "" if value is None else f"{value:,.2f} {unit}".strip()


def table(figures: list[Figure]) -> str:
    """Return the figures as lines of text."""
    rows = [("", "ours", "processor", "limit", "", "ratio", "peer", "")]
    rows += [
        (
            *(each.name, shown(each.ours, each.unit), shown(each.cpu_ms, "ms")),
            *(shown(each.limit, each.unit), each.limit_name if each.limit is not None else ""),
            shown(each.ours / each.limit if each.limit else None, ""),
            *(shown(each.peer, each.unit), each.peer_name if each.peer is not None else ""),
        )
        for each in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column in (0, 4, 7) else text.rjust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def plot(figures: list[Figure], title: str) -> str:
    """Return bars as SVG: how many times its limit each figure is."""
    compared = [(each, each.ours / each.limit) for each in figures if each.limit]
    longest = max(ratio for _, ratio in compared)
    height = ROW_HEIGHT * (len(compared) + 2)
    bars = [
        f'<text x="4" y="{y + 13}">{escape(each.name)}</text>'
        f'<rect x="230" y="{y}" width="{max(2, 320 * ratio / longest):.0f}" height="16"/>'
        f'<text x="{238 + max(2, 320 * ratio / longest):.0f}" y="{y + 13}">'
        f"{ratio:.2f} x {escape(each.limit_name)}</text>"
        for y, (each, ratio) in zip(range(ROW_HEIGHT, height, ROW_HEIGHT), compared, strict=False)
    ]
    # A line at the limit itself.
    limit = 230 + 320 / longest
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="860" height="{height}" '
        'font-family="sans-serif" font-size="13" fill="#4477aa">'
        f'{"".join(bars)}<line x1="{limit:.0f}" x2="{limit:.0f}" y1="12" y2="{height - 32}" '
        'stroke="#aa3377" stroke-dasharray="4"/>'
        f'<text x="4" y="{height - 8}" font-size="11">{escape(title)}</text></svg>\n'
    )
