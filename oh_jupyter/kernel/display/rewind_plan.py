"""Display of a rewind's plan as a table."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from oh_jupyter.kernel.display.html import table
from oh_jupyter.kernel.display.table import size_text

if TYPE_CHECKING:
    from oh_jupyter.checkpoints import RewindPlan


def plan_html(plan: RewindPlan) -> str:
    """Return the files and variables of a plan as a table, followed by its notes."""
    rows = list(_rows(plan))
    if not rows:
        return f"<p>{escape(str(plan))}</p>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in plan.notes)
    return table(("what", "name", "type", "size", "why"), rows) + notes


def _rows(plan: RewindPlan) -> Iterator[tuple[str, ...]]:
    for change in plan.changes:
        yield change.kind, change.path, "file", "", ""
    for path, reason in plan.kept.items():
        yield "keep", path, "file", "", reason
    for path in plan.make_directories:
        yield "create", path, "directory", "", ""
    for path in plan.remove_directories:
        yield "delete", path, "directory", "", ""
    for row in plan.variables:
        size = size_text(row.size) if row.size else ""
        yield row.outcome, row.name, row.type, size, row.reason
