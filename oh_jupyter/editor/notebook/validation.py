"""Validation of notebooks, and edits of their JSON in place, so that none breaks one.

Dumping the JSON again would change indentation, order and escapes; no library edits it in place.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from oh_jupyter.editor.messages import invalid
from oh_jupyter.errors import EditorError
from oh_jupyter.text import shorten

_decoder = json.JSONDecoder()
_blanks = re.compile(r"[ \t\n\r]*")


class Span(NamedTuple):
    """A value, and the offsets of its text."""

    start: int
    end: int
    value: Any


def members(text: str, start: int) -> dict[str, Span]:
    """Return the spans of the values of an object that starts at an offset."""
    return dict(_values(text, start, "{", "}"))


def elements(text: str, start: int) -> list[Span]:
    """Return the spans of the values of an array that starts at an offset."""
    return [span for _, span in _values(text, start, "[", "]")]


def _values(text: str, start: int, opening: str, closing: str) -> Iterator[tuple[str, Span]]:
    _expect(text, start, opening)
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        key: Any = ""
        if opening == "{":
            key, at = _decoder.raw_decode(text, at)
            if not isinstance(key, str):
                raise ValueError(f"the key before character {at} is not a string")
            at = _skip(text, at)
            _expect(text, at, ":")
            at = _skip(text, at + 1)
        value, end = _decoder.raw_decode(text, at)
        yield key, Span(at, end, value)
        at = _after_comma(text, end, closing)


def _skip(text: str, at: int) -> int:
    match = _blanks.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, char: str) -> None:
    if text[at : at + 1] != char:
        raise ValueError(f"{char!r} expected at character {at}")


def _after_comma(text: str, at: int, closing: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == closing:
        return at
    _expect(text, at, ",")
    at = _skip(text, at + 1)
    if text[at : at + 1] == closing:
        raise ValueError(f"value expected at character {at}")
    return at


@dataclass(frozen=True)
class Style:
    r"""Formatting of a document."""

    indent: str | None  # indentation of a level; None for a document on one line
    comma: str
    colon: str
    ascii: bool  # whether other characters than ASCII are escaped

    @classmethod
    def of(cls, text: str) -> Style:
        """Detect the formatting of a JSON object."""
        lead = re.match(r"\s*\{(\s*)", text)
        blank = lead[1] if lead else ""
        indent = blank.rpartition("\n")[2] if "\n" in blank else None
        colon = re.search(r'"(\s*:\s*)', text)
        comma = re.search(r'[\d"\]}](, *)"', text)
        return cls(
            indent,
            comma[1] if comma else ", ",
            colon[1] if colon and "\n" not in colon[1] else ": ",
            text.isascii() and re.search(r"\\u(?!00[0-7])", text) is not None,
        )

    def dump(self, value: object, prefix: str) -> str:
        """Return the JSON text of a value, with further lines indented by ``prefix``."""
        separators = (self.comma if self.indent is None else ",", self.colon)
        dumped = json.dumps(
            value, indent=self.indent, ensure_ascii=self.ascii, separators=separators
        )
        try:
            dumped.encode()
        except UnicodeEncodeError:  # half a surrogate pair must be escaped
            dumped = json.dumps(value, indent=self.indent, separators=separators)
        return dumped.replace("\n", "\n" + prefix)


def indentation_at(text: str, at: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def splice(text: str, replacements: list[tuple[int, int, str]]) -> tuple[int, int, str]:
    """Join several replacements into one."""
    replacements = sorted(replacements)
    first, last = replacements[0][0], replacements[-1][1]
    pieces, position = [], first
    for start, end, new in replacements:
        pieces += [text[position:start], new]
        position = end
    return first, last, "".join(pieces)


_EMPTY = """{
 "cells": [],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3 (ipykernel)",
   "language": "python",
   "name": "python3"
  },
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"""
"""A notebook without cells, formatted as Jupyter does."""

CELL_TYPES = ("code", "markdown", "raw")

_MAJOR, _NEWEST_MINOR = 4, 5
_NOTEBOOK_FACTOR = 10


def is_notebook(path: Path) -> bool:
    """Return whether a file is a notebook, by its name."""
    return path.suffix.lower() == ".ipynb"


def max_bytes_of(path: Path, max_file_bytes: int) -> int:
    """Return the size limit of a file: larger for notebooks, because of their outputs."""
    return max_file_bytes * _NOTEBOOK_FACTOR if is_notebook(path) else max_file_bytes


def new_notebook(path: Path, text: str) -> str:
    """Validate the text of a new notebook; an empty one becomes one without cells."""
    if not is_notebook(path):
        return text
    if not text.strip():
        return _EMPTY
    defect = _defect(text)
    if defect is not None:
        raise invalid(
            "file_text",
            shorten(text, 200, marker="..."),
            f"It is not a valid notebook: {defect.text}. Use the JSON of a notebook, or an empty "
            "text for one without cells, and add cells with `notebook_edit`.",
        )
    return text


def check_notebook(path: Path, old: str, new: str) -> None:
    """Reject an edit that would break a notebook, or make a broken one worse."""
    if not is_notebook(path):
        return
    defect = _defect(new)
    if defect is None:
        return
    before = _defect(old)
    if before is None or before.severity < defect.severity:
        raise EditorError(
            f"The edit would make {path} an invalid notebook: {defect.text}. Nothing was changed. "
            "Change cells with `notebook_edit`, or with `str_replace` in the source of a cell."
        )


def is_cell(value: object) -> bool:
    """Return whether a JSON value has the fields common to all cells."""
    if not isinstance(value, dict) or value.get("cell_type") not in CELL_TYPES:
        return False
    source = value.get("source")
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(line, str) for line in source)
    )


def check_cell(path: Path, old: list[dict[str, Any]], cell: dict[str, Any], minor: int) -> None:
    """Reject a cell that Jupyter would not open, unless an old one was invalid, too."""
    violation = _first_violation(cell, minor, f"{cell['cell_type']}_cell")
    if violation is None:
        return
    if not any(_first_violation(other, minor, f"{other['cell_type']}_cell") for other in old):
        raise EditorError(
            f"The edit would make {path} an invalid notebook: {violation}. Nothing was changed."
        )


class _Defect(NamedTuple):
    severity: int
    text: str


def _defect(text: str) -> _Defect | None:
    """Return the reason why a text is not a notebook."""
    try:
        document = json.loads(text)
    except ValueError as error:
        return _Defect(3, f"invalid JSON ({error})")
    except RecursionError:
        return _Defect(3, "invalid JSON (it is nested too deeply)")
    if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
        return _Defect(2, "`nbformat` is missing")
    if document["nbformat"] < 4:
        return None  # an older format, without cells at the top level
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(map(is_cell, cells)):
        return _Defect(2, "`cells` is not a list of cells")
    ids = [cell["id"] for cell in cells if isinstance(cell.get("id"), str)]
    if len(set(ids)) < len(ids):
        repeated = next(name for number, name in enumerate(ids) if name in ids[:number])
        return _Defect(1, f"two cells have the id {repeated!r}")
    minor = document.get("nbformat_minor")
    violation = _first_violation(document, minor if isinstance(minor, int) else 0)
    return _Defect(1, violation) if violation is not None else None


def _fits(value: dict[str, Any], minor: int, kind: str | None) -> bool:
    """Return whether a value fits the schema, by a check that imports quickly; False if unclear."""
    try:
        _compiled(minor, kind)(value)
    except (ImportError, OSError, ValueError):  # the check raises ValueError
        return False
    return True


@cache
def _compiled(minor: int, kind: str | None) -> Callable[[dict[str, Any]], object]:
    fastjsonschema = importlib.import_module("fastjsonschema")
    spec = importlib.util.find_spec("nbformat")  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("nbformat")
    folder = Path(spec.submodule_search_locations[0], f"v{_MAJOR}")
    schema = json.loads((folder / f"nbformat.v{_MAJOR}.{minor}.schema.json").read_bytes())
    if kind is not None:
        schema = {key: schema[key] for key in ("$schema", "definitions")}
        schema["$ref"] = f"#/definitions/{kind}"
    compiled: Callable[[dict[str, Any]], object]
    compiled = fastjsonschema.compile(schema, use_default=False, use_formats=False)
    return compiled


def _first_violation(value: dict[str, Any], minor: int, kind: str | None = None) -> str | None:
    """Return the first violation of Jupyter's schema by a notebook, or by a part of one."""
    if minor <= _NEWEST_MINOR and _fits(value, minor, kind):
        return None
    validator = importlib.import_module("nbformat.validator")
    # Minor versions newer than the library only add fields.
    newest = min(minor, _NEWEST_MINOR)
    for error in validator.iter_validate(
        value, kind, version=_MAJOR, version_minor=newest, relax_add_props=minor > newest
    ):
        where = "".join(f"[{step!r}]" for step in error.path)
        return f"{error.message[:300]}" + (f" at {where}" if where else "")
    return None
