"""Model of a notebook: cells, and the numbered lines of their headings and sources.

Lines are numbered through the whole notebook, so that a number is unique.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

from oh_jupyter.ansi import as_shown
from oh_jupyter.editor.messages import MARKDOWN_CLIPPED, invalid
from oh_jupyter.editor.notebook.validation import Span, elements, is_cell, members
from oh_jupyter.editor.text.text_file import UTF8, TextFile
from oh_jupyter.editor.text.views import MAX_VIEW_CHARS, check_range
from oh_jupyter.output_text import readable
from oh_jupyter.text import plural, shorten


@dataclass(frozen=True)
class Cell:
    """One cell, and its span in the text of the file."""

    index: int  # counted from 0
    span: Span
    line: int  # the line of its heading, counted from 1

    @cached_property
    def source(self) -> str:
        """Its source, which may be stored as a list of lines."""
        source = self.span.value["source"]
        return source if isinstance(source, str) else "".join(source)

    @property
    def type(self) -> str:
        """Its ``cell_type``."""
        return str(self.span.value["cell_type"])

    @property
    def id(self) -> str | None:
        """Its id; None in notebooks older than format 4.5."""
        value = self.span.value.get("id")
        return value if isinstance(value, str) else None

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"cell [{self.index}]" + (f" (id {self.id})" if self.id is not None else "")

    @cached_property
    def outputs(self) -> str:
        """Its outputs as text, with a checksum for each that is no text; "" without outputs."""
        return "\n".join([*_outputs(self, MAX_COMPARED_LINES, MAX_COMPARED_CHARS), *_media(self)])

    @cached_property
    def metadata(self) -> str:
        """Its metadata as JSON; "" without metadata."""
        metadata = self.span.value.get("metadata")
        return json.dumps(metadata, indent=1, sort_keys=True) if metadata else ""

    @property
    def last_line(self) -> int:
        """Its last line."""
        return self.line + 1 + self.source.count("\n")

    def heading(self, *, executions: bool = True) -> str:
        """Return its heading."""
        parts = [f"# %% [{self.index}] {self.type}"]
        if self.id is not None:
            parts.append(f"id={self.id}")
        count = self.span.value.get("execution_count")
        if executions and count is not None:
            parts.append(f"execution_count={count}")
        return " ".join(parts)


@dataclass(frozen=True)
class Notebook:
    """A notebook of format 4."""

    text: str
    top: dict[str, Span]
    cells: list[Cell]

    @classmethod
    def parse(cls, text: str) -> Notebook | None:
        """Parse a notebook of format 4; None for any other text."""
        start = len(text) - len(text.lstrip(" \t\n\r"))
        try:
            top = members(text, start)
            if top["nbformat"].value != 4:
                return None
            spans = elements(text, top["cells"].start)
        except (ValueError, KeyError, RecursionError):
            return None
        cells, line = [], 1
        for index, span in enumerate(spans):
            if not is_cell(span.value):
                return None
            cells.append(Cell(index, span, line))
            line = cells[-1].last_line + 1
        return cls(text, top, cells)

    @property
    def minor(self) -> int:
        """Minor version of the format."""
        minor = self.top.get("nbformat_minor")
        return minor.value if minor is not None and isinstance(minor.value, int) else 0

    @property
    def line_count(self) -> int:
        """Number of lines in the view."""
        return self.cells[-1].last_line if self.cells else 0

    def listing(self, *, executions: bool = True) -> str:
        """Return headings and sources, without outputs."""
        return "\n".join(
            f"{cell.heading(executions=executions)}\n{cell.source}" for cell in self.cells
        )

    def listing_file(self) -> TextFile:
        """Return the listing as a text file, to edit it like one."""
        return TextFile(self.listing().encode("utf-8", "surrogatepass"), UTF8)


MAX_OUTPUT_LINES = 10
MAX_OUTPUT_CHARS = 800
MAX_COMPARED_LINES = 200
MAX_COMPARED_CHARS = 20_000


def view_notebook(
    notebook: Notebook, path: Path, view_range: list[int] | tuple[int, int] | None
) -> str:
    """Show cells as headings and numbered lines, with shortened outputs."""
    note, first, last = "", 1, notebook.line_count
    if view_range:
        if not notebook.cells:
            raise invalid("view_range", view_range, "The notebook has no cells.")
        first, last, note = check_range(view_range, notebook.line_count)
    lines: list[str] = []
    for cell in notebook.cells:
        lines += _lines_of(cell, first, last)
    count = plural(len(notebook.cells), "cell")
    head = f"Here's the result of running `cat -n` on {path}, a notebook of {count}:\n"
    shown = shorten("\n".join(lines), MAX_VIEW_CHARS, marker=MARKDOWN_CLIPPED)
    return f"{note}{head}{shown}\n" if lines else f"{note}{head}"


def _lines_of(cell: Cell, first: int, last: int) -> list[str]:
    text = [cell.heading(), *cell.source.split("\n")]
    shown = [
        f"{number:6}\t{line}"
        for number, line in enumerate(text, cell.line)
        if first <= number <= last
    ]
    if first <= cell.last_line <= last:
        outputs = _outputs(cell, MAX_OUTPUT_LINES, MAX_OUTPUT_CHARS)
        shown += [f"{'out':>6}\t{line}" for line in outputs]
    return shown


def _media(cell: Cell) -> list[str]:
    """Return a line for each image and other output that is no text."""
    outputs = cell.span.value.get("outputs")
    bundles = [output.get("data") for output in outputs or () if isinstance(output, dict)]
    return [
        f"[{kind}, checksum {crc32(json.dumps(content).encode()):08x}]"
        for bundle in bundles
        if isinstance(bundle, dict)
        for kind, content in bundle.items()
        if not kind.startswith("text/")
    ]


def _outputs(cell: Cell, max_lines: int, max_chars: int) -> list[str]:
    outputs = cell.span.value.get("outputs")
    if not isinstance(outputs, list):
        return []
    lines = [line for output in outputs if isinstance(output, dict) for line in _output(output)]
    shown: list[str] = []
    size = 0
    for line in lines[:max_lines]:
        if size >= max_chars:
            break
        size += len(line)
        marker = f" ... ({plural(len(line) - max_chars, 'more character')})"
        shown.append(shorten(line, max_chars, marker=marker))
    if len(shown) < len(lines):
        shown.append(f"... ({plural(len(lines) - len(shown), 'more line')} of output)")
    return shown


def _output(output: dict[str, Any]) -> list[str]:
    kind = output.get("output_type")
    if kind == "stream":
        return _text_lines(output.get("text"))
    if kind == "error":
        return _text_lines(f"{output.get('ename')}: {output.get('evalue')}")
    data = output.get("data")
    if not isinstance(data, dict):
        return []
    lines = [f"[{kind}]" for kind in data if not kind.startswith("text/")]
    if shown := readable(data):
        return _text_lines(shown) + lines
    return lines or [f"[{media_type}]" for media_type in data]


def _text_lines(text: object) -> list[str]:
    if isinstance(text, list):
        text = "".join(map(str, text))
    elif not isinstance(text, str):
        text = json.dumps(text)
    return as_shown(text).removesuffix("\n").split("\n")
