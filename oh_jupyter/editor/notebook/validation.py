"""Notebook validation: an edit never breaks one."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from oh_jupyter.editor.messages import invalid
from oh_jupyter.errors import EditorError

EMPTY = """{
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
"""The types of cells."""

_MAJOR, _NEWEST_MINOR = 4, 5
_NOTEBOOK_FACTOR = 10


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.suffix.lower() == ".ipynb"


def max_bytes_of(path: Path, max_file_bytes: int) -> int:
    """Limit of the size of a file; most of a notebook may be outputs, which are cut when shown."""
    return max_file_bytes * _NOTEBOOK_FACTOR if is_notebook(path) else max_file_bytes


def new_notebook(path: Path, text: str) -> str:
    """Text of a new file, checked if it is a notebook; an empty one becomes one without cells."""
    if not is_notebook(path):
        return text
    if not text.strip():
        return EMPTY
    problem = _problem(text)
    if problem is not None:
        raise invalid(
            "file_text",
            text if len(text) <= 200 else text[:200] + "...",
            f"It is no valid notebook: {problem.text}. Give the JSON of one, or an empty text for "
            "a notebook without cells, and add cells with the command `notebook_edit`.",
        )
    return text


def check_notebook(path: Path, old: str | None, new: str) -> None:
    """Refuse an edit that would break a notebook, or make a broken one worse."""
    if not is_notebook(path) or old is None:
        return
    problem = _problem(new)
    if problem is None:
        return
    before = _problem(old)
    if before is None or before.severity < problem.severity:
        raise EditorError(
            f"The edit would leave {path} no valid notebook: {problem.text}. Nothing was changed. "
            "Change cells with `notebook_edit`, or `str_replace` a text in the source of one."
        )


def is_cell(value: object) -> bool:
    """Whether a JSON value has what every cell has."""
    if not isinstance(value, dict) or value.get("cell_type") not in CELL_TYPES:
        return False
    source = value.get("source")
    return isinstance(source, str) or (
        isinstance(source, list) and all(isinstance(line, str) for line in source)
    )


def check_cell(path: Path, old: list[dict[str, Any]], cell: dict[str, Any], minor: int) -> None:
    """Refuse a cell that Jupyter would not open, unless it was like that before."""
    problem = _first_violation(cell, minor, f"{cell['cell_type']}_cell")
    if problem is None:
        return
    if not any(_first_violation(other, minor, f"{other['cell_type']}_cell") for other in old):
        raise EditorError(
            f"The edit would leave {path} no valid notebook: {problem}. Nothing was changed."
        )


class _Problem(NamedTuple):
    severity: int
    text: str


def _problem(text: str) -> _Problem | None:
    """Say why a text is not a notebook, and how badly."""
    try:
        document = json.loads(text)
    except ValueError as error:
        return _Problem(3, f"invalid JSON ({error})")
    except RecursionError:
        return _Problem(3, "invalid JSON (it is nested too deeply)")
    if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
        return _Problem(2, "`nbformat` is missing")
    if document["nbformat"] < 4:
        return None  # of an older format, without cells on the top level
    cells = document.get("cells")
    if not isinstance(cells, list) or not all(map(is_cell, cells)):
        return _Problem(2, "`cells` is not a list of cells")
    minor = document.get("nbformat_minor")
    repeated = _repeated_id(cells)
    if repeated is not None:
        return _Problem(1, f"two cells have the id {repeated!r}")
    violation = _first_violation(document, minor if isinstance(minor, int) else 0)
    return _Problem(1, violation) if violation is not None else None


def _repeated_id(cells: list[Any]) -> str | None:
    seen: set[str] = set()
    for cell in cells:
        name = cell.get("id") if isinstance(cell, dict) else None
        if isinstance(name, str):
            if name in seen:
                return name
            seen.add(name)
    return None


def _fits(value: dict[str, Any], minor: int, kind: str | None) -> bool:
    """Whether a value fits the schema, by a check that is quick to import; False if unclear."""
    try:
        check = _compiled(minor, kind)
        check(value)
    except (ImportError, OSError, ValueError):  # what the check raises is a ValueError
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
    """First violation of Jupyter's schema by a notebook, or by a part of one."""
    if minor <= _NEWEST_MINOR and _fits(value, minor, kind):
        return None
    validator = importlib.import_module("nbformat.validator")
    # Minor versions newer than the library only add fields.
    newest = min(minor, _NEWEST_MINOR)
    for problem in validator.iter_validate(
        value, kind, version=_MAJOR, version_minor=newest, relax_add_props=minor > newest
    ):
        place = "".join(f"[{step!r}]" for step in problem.path)
        return f"{problem.message[:300]}" + (f" at {place}" if place else "")
    return None
