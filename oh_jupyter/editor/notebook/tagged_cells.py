"""Cells of notebooks that a person has tagged, so that agents leave them alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from oh_jupyter.control_messages import KEEP_OUT_TAG
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.errors import EditorError

P = ParamSpec("P")
T = TypeVar("T")

_is_agents: ContextVar[bool] = ContextVar("_is_agents", default=False)
"""Whether the current edit is an agent's."""


def for_agent(edit: Callable[P, T]) -> Callable[P, T]:
    """Return a function that refuses changes of tagged cells."""

    @wraps(edit)
    def edit_for_agent(*args: P.args, **kwargs: P.kwargs) -> T:
        token = _is_agents.set(True)
        try:
            return edit(*args, **kwargs)
        finally:
            _is_agents.reset(token)

    return edit_for_agent


def check_tagged_cells(path: Path, old: bytes | None, new: bytes | None) -> None:
    """Raise EditorError if an agent's edit changes, moves or removes a tagged cell."""
    if not _is_agents.get() or old is None or not is_notebook(path):
        return
    if KEEP_OUT_TAG.encode() not in old:
        return
    before = _tagged(old)
    if before and before != _tagged(new or b""):
        raise EditorError(
            f"{path} has cells with the tag {KEEP_OUT_TAG}: the person does not want agents to "
            "change them. Nothing was written; leave these cells as they are"
        )


def _tagged(notebook: bytes) -> list[tuple[str, str]]:
    """Return type and text of each tagged cell; none of what is not a notebook."""
    try:
        cells = json.loads(notebook)["cells"]
        return [
            (cell["cell_type"], "".join(cell["source"]))
            for cell in cells
            if KEEP_OUT_TAG in cell.get("metadata", {}).get("tags", ())
        ]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return []
