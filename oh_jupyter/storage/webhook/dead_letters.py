"""Undelivered changes for people: to be looked at, sent again, or forgotten."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from oh_jupyter.storage.webhook.changes import Delivery
from oh_jupyter.storage.webhook.outbox import Outbox

__all__ = ["deliveries", "discard", "replay"]


def deliveries(outbox: Outbox) -> list[Delivery]:
    """List what the receiver does not have, in the order in which it happened."""
    now = datetime.now(UTC)
    found: list[tuple[int, Delivery]] = []
    pending = outbox.pending()
    for change in pending:
        due = datetime.fromtimestamp(change.due, UTC)
        delivery = Delivery(
            change.id,
            "DELETE" if change.method == "DELETE" else "POST",
            change.path,
            change.size,
            "waiting",
            change.attempts,
            change.reason or "",
            datetime.fromtimestamp(change.recorded, UTC),
            due if due > now else None,
        )
        found.append((change.number, delivery))
    newest = {change.key: change.number for change in pending}
    for row in outbox.dead_letters():
        number, id, method, path, key, size, recorded, attempts, reason, superseded, _ = row
        when = datetime.fromtimestamp(recorded, UTC)
        is_old = bool(superseded) or newest.get(key, 0) > number
        letter = Delivery(id, method, path, size, "dead", attempts, reason, when, None, is_old)
        found.append((number, letter))
    return [delivery for _, delivery in sorted(found, key=lambda pair: pair[0])]


def replay(outbox: Outbox, ids: Collection[str], *, force: bool) -> int:
    """Queue dead letters again: those named or all, superseded ones only if forced.

    Those whose contents were not kept cannot be; the result is the number that could.
    """
    superseded = {d.id for d in deliveries(outbox) if d.superseded}
    numbers = [
        row[0]
        for row in outbox.dead_letters()
        if (not ids or row[1] in ids) and row[-1] and (force or row[1] not in superseded)
    ]
    outbox.requeue(numbers)
    return len(numbers)


def discard(outbox: Outbox, ids: Collection[str]) -> int:
    """Forget dead letters, those named or all, and count them."""
    numbers = [row[0] for row in outbox.dead_letters() if not ids or row[1] in ids]
    outbox.delete_dead(numbers)
    return len(numbers)
