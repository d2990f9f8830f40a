"""Tables that magics return, and rounded numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_DIGITS = 3
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def number_text(number: float) -> str:
    """Return a number with three significant digits, or all digits of its integer part."""
    if not math.isfinite(number) or not number:
        return f"{number:g}"
    places = max(0, _DIGITS - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def size_text(size_bytes: int) -> str:
    """Return a size in the unit that needs at most three integer digits."""
    size, units = float(size_bytes), list(_UNITS)
    while size >= 999.5 and len(units) > 1:  # 999.5 would be rounded to 1000
        size /= 1000
        units.pop(0)
    return f"{number_text(size)} {units[0]}"


@dataclass(frozen=True)
class Table:
    """Rows as a table and as dicts; a long table shows its start, its end and a summary."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    formats: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    summary: str = ""
    max_shown_rows: int = 200

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return one row by its position."""
        return dict(zip(self.columns, self.rows[index], strict=True))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts."""
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        """Return the table in columns of text."""
        if not self.rows:
            return "(nothing)"
        shown = list(self._shown())
        lines = [self.columns, *(row for row in shown if not isinstance(row, str))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [line if isinstance(line, str) else _padded(line, widths) for line in shown]
        return "\n".join([*filter(None, [self._caption]), _padded(self.columns, widths), *text])

    def _repr_html_(self) -> str:
        import oh_jupyter.kernel.display.html as html

        return html.table(self.columns, self._shown(), self._caption)

    @property
    def _caption(self) -> str | None:
        return self.summary or None if len(self.rows) > self.max_shown_rows else None

    def _shown(self) -> Iterator[tuple[str, ...] | str]:
        """Yield the displayed rows, and a remark in place of the others."""
        hidden = len(self.rows) - self.max_shown_rows
        if hidden <= 0:
            yield from map(self._text, self.rows)
            return
        last = self.max_shown_rows // 4
        yield from map(self._text, self.rows[: self.max_shown_rows - last])
        yield f"… {hidden:,} more, all of them in the value"
        yield from map(self._text, self.rows[len(self.rows) - last :])

    def _text(self, row: tuple[Any, ...]) -> tuple[str, ...]:
        return tuple(
            self.formats.get(column, _value_text)(value)
            for column, value in zip(self.columns, row, strict=True)
        )


def _value_text(value: Any) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
