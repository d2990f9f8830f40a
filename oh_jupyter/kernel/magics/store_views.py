"""What ``%oh_store`` shows: entries, trees, transfers and deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from oh_jupyter.kernel.display.table import Table, size_text

if TYPE_CHECKING:
    from oh_jupyter.storage import Delivery, DeliveryReport, FileInfo, FileStore, Transfer

__all__ = ["Tree", "delivery_table", "entry_table", "report_table", "transfer_table"]

MAX_SHOWN_CHARS = 30_000
MAX_SHOWN_FILES = 1000
MAX_SHOWN_TRANSFERS = 20


def _size(size_bytes: int | str) -> str:
    """A size with its unit; a directory has none."""
    return size_text(size_bytes) if isinstance(size_bytes, int) else size_bytes


_SIZES = {"size": _size}


class StoredText(str):
    """The contents of a file, shown as they are; of a long one the beginning."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        left_out = len(self) - MAX_SHOWN_CHARS
        note = f"\n… {left_out:,} more characters, all of them in the value"
        printer.text(self[:MAX_SHOWN_CHARS] + (note if left_out > 0 else ""))


class Tree:
    """A directory and everything below it, drawn as a tree; ``paths`` are its files."""

    def __init__(self, store: FileStore, path: str) -> None:
        self.paths: list[str] = []
        self._lines = [path.strip("/") or "."]
        self._lines += self._below(store, path, "")

    def _below(self, store: FileStore, path: str, indent: str) -> Iterator[str]:
        entries = store.list(path)
        for entry in entries:
            if len(self.paths) >= MAX_SHOWN_FILES:
                return
            last = entry == entries[-1]
            name = entry.rstrip("/").rpartition("/")[2]
            yield f"{indent}{'└── ' if last else '├── '}{name}{'/' * entry.endswith('/')}"
            if entry.endswith("/"):
                yield from self._below(store, entry, indent + ("    " if last else "│   "))
            else:
                self.paths.append(entry)

    def __repr__(self) -> str:
        """The drawing."""
        more = (
            [f"… and more than {MAX_SHOWN_FILES} files"]
            if len(self.paths) >= MAX_SHOWN_FILES
            else []
        )
        return "\n".join([*self._lines, *more])


def entry_table(entries: Iterable[FileInfo], modified: bool = False, noun: str = "files") -> Table:
    """Paths and sizes of entries, with ``modified`` also times; directories have a slash."""
    rows = [
        (
            entry["path"] + "/" * (entry["type"] == "directory"),
            "" if entry["size"] is None else entry["size"],
            *([_when(entry["modified"])] if modified else []),
        )
        for entry in entries
    ]
    columns = ("path", "size", *(["modified"] if modified else []))
    return Table(columns, tuple(rows), _SIZES, summary=f"{len(rows):,} {noun}")


def transfer_table(done: Transfer) -> Table:
    """What a transfer did; shown of many are the first, the last and how many there are."""
    rows = [("copied", path) for path in done.copied] + [("deleted", p) for p in done.deleted]
    if done.unchanged:
        rows.append(("unchanged", f"{done.unchanged:,} files"))
    counts = {
        "copied": len(done.copied),
        "deleted": len(done.deleted),
        "unchanged": done.unchanged,
    }
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return Table(("what", "path"), tuple(rows), summary=summary, max_shown_rows=MAX_SHOWN_TRANSFERS)


def delivery_table(deliveries: Iterable[Delivery]) -> Table:
    """The changes that a webhook's receiver does not have."""
    rows = [
        (d.id, d.method, d.path, d.size, _state(d), d.attempts, d.reason, _when(d.due))
        for d in deliveries
    ]
    columns = ("id", "method", "path", "size", "state", "attempts", "reason", "due")
    return Table(columns, tuple(rows), _SIZES, summary=f"{len(rows):,} changes")


def report_table(report: DeliveryReport) -> Table:
    """What became of changes: counts, and each change that was given up."""
    rows: list[tuple[str, object]] = [
        ("delivered", report.delivered),
        ("pending", report.pending),
        ("failed", len(report.failed)),
    ]
    rows += [(f"{f.method} {f.path}", f.reason) for f in report.failed]
    return Table(("what", "value"), tuple(rows))


def _state(delivery: Delivery) -> str:
    return "superseded" if delivery.superseded else delivery.state


def _when(time: datetime | None) -> str:
    return "" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
