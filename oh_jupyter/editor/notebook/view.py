"""View of a notebook: its cells with numbered lines, and short outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.editor.messages import MARKDOWN_CLIPPED, invalid, plural
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.text.views import check_range, clip

__all__ = ["view_notebook"]

_MAX_OUTPUT_LINES = 10
_MAX_OUTPUT_CHARS = 800
_TEXTS = ("text/plain", "text/markdown", "text/latex")


def view_notebook(
    notebook: Notebook, path: Path, view_range: list[int] | tuple[int, int] | None
) -> str:
    """Cells with headings and numbered lines, and their outputs shortened and without numbers.

    Each cell begins with a heading that has its index, type, id and execution count.
    Headings and sources are numbered; ``view_range`` and ``insert_line`` mean these
    numbers. Outputs follow their cell, shortened and without numbers.
    """
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
    shown = clip("\n".join(lines), MARKDOWN_CLIPPED)
    return f"{note}{head}{shown}\n" if lines else f"{note}{head}"


def _lines_of(cell: Cell, first: int, last: int) -> list[str]:
    text = [cell.heading(), *cell.source.split("\n")]
    shown = [
        f"{number:6}\t{line}"
        for number, line in enumerate(text, cell.line)
        if first <= number <= last
    ]
    if first <= cell.last_line <= last:
        shown += [f"{'out':>6}\t{line}" for line in _outputs(cell)]
    return shown


def _outputs(cell: Cell) -> list[str]:
    outputs = cell.span.value.get("outputs")
    if not isinstance(outputs, list):
        return []
    lines = [line for output in outputs if isinstance(output, dict) for line in _output(output)]
    kept, size = 0, 0
    while kept < len(lines) and kept < _MAX_OUTPUT_LINES and size < _MAX_OUTPUT_CHARS:
        size += len(lines[kept])
        kept += 1
    shown = [_shortened(line) for line in lines[:kept]]
    if kept < len(lines):
        shown.append(f"... ({plural(len(lines) - kept, 'more line')} of output)")
    return shown


def _shortened(line: str) -> str:
    if len(line) <= _MAX_OUTPUT_CHARS:
        return line
    more = len(line) - _MAX_OUTPUT_CHARS
    return f"{line[:_MAX_OUTPUT_CHARS]} ... ({plural(more, 'more character')})"


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
    for media_type in _TEXTS:
        if media_type in data:
            return _text_lines(data[media_type]) + lines
    return lines or [f"[{media_type}]" for media_type in data]


def _text_lines(text: object) -> list[str]:
    if isinstance(text, list):
        text = "".join(map(str, text))
    elif not isinstance(text, str):
        text = json.dumps(text)
    plain = strip_ansi(text).removesuffix("\n")
    # A progress bar writes over its line; what it ended with is what a person sees.
    return [line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n")]
