"""Ids of the agents' last conversations by workspace, with which later kernels resume them."""

from __future__ import annotations

import os

from oh_jupyter.state.shared import open_ledger


def saved_session(workspace_dir: str, agent: str) -> str | None:
    """Return the id of an agent's last conversation in a workspace; raise LedgerError."""
    query = "SELECT session FROM agent_sessions WHERE workspace = ? AND agent = ?"
    row = open_ledger().row(query, (_key(workspace_dir), agent))
    return None if row is None else str(row[0])


def save_session(workspace_dir: str, agent: str, session_id: str | None) -> None:
    """Replace the id, None for a conversation that cannot be resumed; raise LedgerError.

    It waits for the ledger.
    """
    if saved_session(workspace_dir, agent) == session_id:
        return
    ledger, workspace = open_ledger(), _key(workspace_dir)
    if session_id is None:
        ledger.execute(
            "DELETE FROM agent_sessions WHERE workspace = ? AND agent = ?", (workspace, agent)
        )
    else:
        ledger.execute(
            "INSERT OR REPLACE INTO agent_sessions VALUES (?, ?, ?)", (workspace, agent, session_id)
        )


def _key(workspace_dir: str) -> bytes:
    return os.fsencode(os.path.realpath(workspace_dir))
