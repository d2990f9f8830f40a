"""Operations on the file store, and on undelivered changes of its webhook."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from oh_jupyter.operations.declaration import Operation


@dataclass(frozen=True)
class StoreEntry:
    """Metadata of a file or directory of the store.

    Attributes:
        path: Its path, without a trailing slash; "" for the root.
        type: What it is.
        size: Size in bytes; null for a directory, or where it would be slow to query.
        modified: Time of the last change in UTC, in ISO format; null if the store has none.
    """

    path: str
    type: Literal["file", "directory"]
    size: int | None
    modified: str | None = field(metadata={"format": "date-time"})


@dataclass(frozen=True)
class StoreListing:
    """The entries of a directory of the store.

    Attributes:
        entries: Their paths, directories with a trailing slash, unless details were wanted.
        details: Metadata of the first ones, if details were wanted.
        total: Number of entries.
    """

    entries: list[str]
    details: list[StoreEntry]
    total: int


@dataclass(frozen=True)
class Delivery:
    """An undelivered change.

    Attributes:
        id: The ``webhook-id`` of the request.
        method: ``POST`` or ``DELETE``.
        path: Path of the file.
        size: Size of the contents in bytes.
        state: Whether it is still retried automatically.
        attempts: Number of failed attempts.
        reason: Reason of the last failure; "" before the first attempt.
        recorded: Time of the change in UTC, in ISO format.
        due: Time of the next attempt in UTC; null for now or never.
        superseded: Whether a later change of the file was accepted or is waiting, so that sending
            it again would revert the receiver to an older state.
    """

    id: str
    method: str
    path: str
    size: int
    state: Literal["waiting", "dead"]
    attempts: int
    reason: str
    recorded: str
    due: str | None
    superseded: bool


@dataclass(frozen=True)
class DeliveryList:
    """The undelivered changes of a store.

    Attributes:
        has_webhook: Whether the store has a webhook.
        total: Number of undelivered changes.
        deliveries: The last ones, oldest first.
    """

    has_webhook: bool
    total: int
    deliveries: list[Delivery]


@dataclass(frozen=True)
class ListStore(Operation[StoreListing], scope="anyone"):
    """List all paths in a directory of the store.

    Attributes:
        path: The directory; "" for the root.
        details: Return instead what is known of the first entries, and the number of all.
    """

    path: str
    details: bool = False


@dataclass(frozen=True)
class StoreInfo(Operation[StoreEntry], scope="anyone"):
    """Return the metadata of a file or directory of the store.

    Attributes:
        path: The path in the store.
    """

    path: str


@dataclass(frozen=True)
class RenameInStore(Operation[None], scope="anyone"):
    """Rename a file or directory of the store; never replace an existing one.

    Attributes:
        path: The path in the store.
        to: The new path.
    """

    path: str
    to: str


@dataclass(frozen=True)
class DeleteFromStore(Operation[None], scope="anyone"):
    """Delete a file or directory of the store.

    Attributes:
        path: The path in the store.
    """

    path: str


@dataclass(frozen=True)
class CopyWithStore(Operation[dict[str, Any]], scope="agent", names_actor=True):
    """Copy between the workspace and the store, as an Action of the agent.

    Attributes:
        direction: "put" copies to the store, "get" from it.
        path: The path in the store.
        file: The file or folder in the workspace. To put a variable of the notebook, in the format
            of the path's suffix: ``variable:`` and its name.
    """

    direction: Literal["put", "get"]
    path: str
    file: str


@dataclass(frozen=True)
class AgentDeleteFromStore(Operation[dict[str, Any]], scope="agent", names_actor=True):
    """Delete from the store as an Action of the agent, which a person may have to approve.

    Attributes:
        path: The path in the store.
    """

    path: str


@dataclass(frozen=True)
class Deliveries(Operation[DeliveryList], scope="person"):
    """Return the newest undelivered changes of the webhook."""


@dataclass(frozen=True)
class ResendDeliveries(Operation[int], scope="person"):
    """Send dead letters of the webhook again; return their number.

    Attributes:
        ids: The dead letters; null for all.
        force: Also send superseded ones.
    """

    ids: list[str] | None = None
    force: bool = False


@dataclass(frozen=True)
class DiscardDeliveries(Operation[int], scope="person"):
    """Discard dead letters of the webhook; return their number.

    Attributes:
        ids: The dead letters; null for all.
    """

    ids: list[str] | None = None
