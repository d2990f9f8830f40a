"""Figures that grow with something, as a plot with logarithmic axes beside their limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 80, 40, 40, 56
OURS, LIMIT = "#4477aa", "#aa3377"


@dataclass(frozen=True)
class Curve:
    """A figure at several sizes.

    Attributes:
        title: Heading of the plot.
        size_name: What grows, such as ``clients``.
        value_name: The figure with its unit, such as ``actions a second``.
        limit_name: What its limit is, such as ``GET alive``.
        points: Sizes, each with our figure and the limit.
    """

    title: str
    size_name: str
    value_name: str
    limit_name: str
    points: Sequence[tuple[float, float, float]]


def table_of(curve: Curve) -> str:
    """Return the points as lines of text."""
    head = f"{curve.size_name:>14}  {curve.value_name:>24}  {curve.limit_name:>24}  ratio"
    rows = [
        f"{size:14,.0f}  {ours:24,.2f}  {limit:24,.2f}  {ours / limit:5.2f}"
        for size, ours, limit in curve.points
    ]
    return "\n".join([curve.title, head, *rows])


def plot_of(curve: Curve, machine: str) -> str:
    """Return the points as SVG: our figures and the limit as two lines."""
    values = [value for _, *both in curve.points for value in both]
    sizes = [size for size, *_ in curve.points]
    x_ticks, y_ticks = decades(sizes), decades(values)

    def x_of(size: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * share(size, x_ticks)

    def y_of(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(value, y_ticks)

    def line(column: int, colour: str, dashes: str) -> str:
        points = " ".join(f"{x_of(row[0]):.1f},{y_of(row[column]):.1f}" for row in curve.points)
        return (
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/>'
        )

    grid = [
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(tick):.1f}" y2="{y_of(tick):.1f}" '
        f'stroke="#ddd"/><text x="{LEFT - 6}" y="{y_of(tick) + 4:.1f}" '
        f'text-anchor="end">{tick:,.10g}</text>'
        for tick in y_ticks
    ]
    grid += [
        f'<text x="{x_of(size):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
        f"{size:,.0f}</text>"
        for size in sizes
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#333">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(grid)}'
        f"{line(2, LIMIT, '4')}{line(1, OURS, '0')}"
        f'<text x="{LEFT}" y="18" font-size="14">{escape(curve.title)}</text>'
        f'<text x="{LEFT}" y="34" fill="{OURS}">ours, {escape(curve.value_name)}</text>'
        f'<text x="{WIDTH - RIGHT}" y="34" fill="{LIMIT}" text-anchor="end">'
        f"{escape(curve.limit_name)}</text>"
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 22}" text-anchor="middle">'
        f"{escape(curve.size_name)}</text>"
        f'<text x="4" y="{HEIGHT - 6}" font-size="10">{escape(machine)}</text></svg>\n'
    )


def decades(values: Sequence[float]) -> list[float]:
    """Return the powers of ten from the one below the smallest value to that above the largest."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def share(value: float, ticks: Sequence[float]) -> float:
    """Return where a value is between the first and the last tick, from 0 to 1."""
    low, high = math.log10(ticks[0]), math.log10(ticks[-1])
    return (math.log10(value) - low) / (high - low)
