"""Contents of a ledger: numbers of rows, and removal of what belongs to a workspace."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.errors import ConfigError
from oh_jupyter.state.contents import discard_orphans
from oh_jupyter.state.ledger import Ledger
from oh_jupyter.state.tables import CONTENTS

MAX_LISTED = 5
"""Workspaces that the error about an unknown one lists."""

_ORPHAN_SECONDS = 60.0  # an edit that has just started names its contents sooner
_TABLES_OF_WORKSPACES = (
    "SELECT tables.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns "
    "WHERE tables.type = 'table' AND columns.name = 'workspace' ORDER BY tables.name"
)


def row_counts(ledger: Ledger) -> dict[str, int]:
    """Return the number of rows by table; raise LedgerError if the ledger cannot be read."""
    if not ledger.exists():
        return {}
    counts = {table: ledger.row(f"SELECT count(*) FROM {table}") for table in CONTENTS}
    return {table: 0 if row is None else row[0] for table, row in counts.items()}


def size_bytes(ledger: Ledger) -> int:
    """Return the size of the database with its write-ahead log."""
    files = [] if ledger.path is None else [ledger.path, Path(f"{ledger.path}-wal")]
    return sum(file.stat().st_size for file in files if file.exists())


def forget_workspace(ledger: Ledger, workspace: str) -> dict[str, int]:
    """Remove the rows of a workspace.

    Returns:
        The number of removed rows by table.

    Raises:
        ConfigError: There are none.
        LedgerError: The ledger cannot be written.
    """
    key = os.fsencode(os.path.realpath(os.path.expanduser(workspace)))
    known = _workspaces(ledger)
    if key not in known:
        listed = [os.fsdecode(each) for each in sorted(known)]
        more = f" and {len(listed) - MAX_LISTED} more" if len(listed) > MAX_LISTED else ""
        raise ConfigError(
            f"the ledger {ledger.path} has nothing of {os.fsdecode(key)}. Workspaces: "
            f"{', '.join(listed[:MAX_LISTED]) or 'none'}{more}"
        )
    removed = {}
    with ledger.transaction(is_flushed=True) as connection:
        for (table,) in connection.execute(_TABLES_OF_WORKSPACES).fetchall():
            deletion = f"DELETE FROM {table} WHERE workspace = ?"
            removed[table] = connection.execute(deletion, (key,)).rowcount
    discard_orphans(ledger, _ORPHAN_SECONDS)
    return {table: count for table, count in removed.items() if count}


def _workspaces(ledger: Ledger) -> set[bytes]:
    return {
        workspace
        for (table,) in ledger.rows(_TABLES_OF_WORKSPACES)
        for (workspace,) in ledger.rows(f"SELECT DISTINCT workspace FROM {table}")
    }
