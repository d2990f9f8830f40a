"""The tables of a page as data."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.errors import BrowserError

__all__ = ["read_tables"]

TABLES_SCRIPT = """() => [...document.querySelectorAll("table")].map((table) => {
  const rows = [], heads = [];
  [...table.rows].forEach((row, y) => {
    rows[y] = rows[y] || [];
    heads.push(row.parentNode.tagName === "THEAD" ||
      (row.cells.length > 0 && [...row.cells].every((cell) => cell.tagName === "TH")));
    let x = 0;
    for (const cell of row.cells) {
      while (rows[y][x] !== undefined) x++;
      for (let dy = 0; dy < (cell.rowSpan || 1) && y + dy < table.rows.length; dy++) {
        rows[y + dy] = rows[y + dy] || [];
        for (let dx = 0; dx < cell.colSpan; dx++) rows[y + dy][x + dx] = cell.innerText.trim();
      }
      x += cell.colSpan;
    }
  });
  let head = heads.findIndex((is) => !is);
  if (head < 0) head = heads.length;
  return { head, rows: rows.map((row) => Array.from(row, (text) => text ?? "")) };
})"""


def read_tables(env: BrowserEnv) -> list[Any]:
    """Read the tables of the active page, with spanning cells repeated."""
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        raise BrowserError("Tables need pandas: pip install pandas.") from None
    frames = []
    for table in env.evaluate(TABLES_SCRIPT):
        head, rows = table["head"], table["rows"]
        width = max(map(len, rows), default=0)
        rows = [row + [""] * (width - len(row)) for row in rows]
        heads = zip(*rows[:head], strict=True)
        names = [" ".join(dict.fromkeys(filter(None, parts))) for parts in heads]
        frame = pandas.DataFrame(rows[head:], columns=names or None)
        for position in range(frame.shape[1]):
            with suppress(ValueError, TypeError):
                frame.isetitem(position, pandas.to_numeric(frame.iloc[:, position]))
        frames.append(frame)
    return frames
