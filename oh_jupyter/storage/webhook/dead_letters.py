"""Undelivered changes for people: to be looked at, sent again, or forgotten."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from oh_jupyter.storage.webhook.changes import Delivery
from oh_jupyter.storage.webhook.outbox import Outbox

__all__ = ["deliveries", "discard", "replay"]


def deliveries(outbox: Outbox) -> list[Delivery]:
    """List what the receiver does not have.

    Args:
        outbox: Where it waits.

    Returns:
        The waiting and the dead, in the order in which they happened.
    """
    now = datetime.now(UTC)
    found: list[tuple[int, Delivery]] = []
    waiting = outbox.waiting()
    for change in waiting:
        due = datetime.fromtimestamp(change.due, UTC)
        found.append(
            (
                change.number,
                Delivery(
                    change.id,
                    "DELETE" if change.method == "DELETE" else "POST",
                    change.path,
                    change.size,
                    "waiting",
                    change.attempts,
                    change.reason or "",
                    datetime.fromtimestamp(change.recorded, UTC),
                    due if due > now else None,
                ),
            )
        )
    later = {change.key: change.number for change in waiting}
    for number, id, method, path, key, size, recorded, attempts, reason, gone, _ in outbox.dead():
        superseded = bool(gone) or later.get(key, 0) > number
        when = datetime.fromtimestamp(recorded, UTC)
        letter = Delivery(id, method, path, size, "dead", attempts, reason, when, None, superseded)
        found.append((number, letter))
    return [delivery for _, delivery in sorted(found, key=lambda pair: pair[0])]


def replay(outbox: Outbox, ids: Collection[str], *, force: bool) -> int:
    """Let dead letters wait again.

    Args:
        outbox: Where they are.
        ids: Which; all when empty.
        force: Also those that a later change has superseded.

    Returns:
        How many wait now. Those of which only the name was kept cannot.
    """
    superseded = {d.id for d in deliveries(outbox) if d.superseded}
    numbers = [
        row[0]
        for row in outbox.dead()
        if (not ids or row[1] in ids) and row[-1] and (force or row[1] not in superseded)
    ]
    outbox.requeue(numbers)
    return len(numbers)


def discard(outbox: Outbox, ids: Collection[str]) -> int:
    """Forget dead letters.

    Args:
        outbox: Where they are.
        ids: Which; all when empty.

    Returns:
        How many there were.
    """
    numbers = [row[0] for row in outbox.dead() if not ids or row[1] in ids]
    outbox.delete_dead(numbers)
    return len(numbers)
