"""A person's trust in the settings of a folder: in exactly these contents of its file.

A record of trust is a digest of path and contents, as in direnv; any change of the file ends it.
"""

from __future__ import annotations

import logging
import os

from oh_jupyter.config import SettingsFile, folder_settings
from oh_jupyter.errors import ConfigError, LedgerError
from oh_jupyter.state.shared import open_ledger

_logger = logging.getLogger(__name__)


def is_trusted(file: SettingsFile) -> bool:
    """Return whether a person trusts a file with these contents; no if the ledger is unusable."""
    try:
        query = "SELECT 1 FROM trusted_settings WHERE digest = ?"
        return open_ledger().row(query, (file.digest,)) is not None
    except LedgerError as error:
        _logger.warning("%s counts as not trusted: %s", file.path, error)
        return False


def trust(file: SettingsFile) -> None:
    """Record that a person trusts a file with these contents; wait for the ledger."""
    open_ledger().execute(
        "INSERT OR IGNORE INTO trusted_settings VALUES (?, ?)",
        (file.digest, os.fsencode(file.path)),
    )


def distrust(path: str) -> bool:
    """Remove the records of a file with any contents; return whether there was one."""
    ledger, values = open_ledger(), (os.fsencode(path),)
    if ledger.row("SELECT 1 FROM trusted_settings WHERE path = ?", values) is None:
        return False
    # A power loss must not bring the trust back.
    with ledger.transaction(is_flushed=True) as connection:
        connection.execute("DELETE FROM trusted_settings WHERE path = ?", values)
    return True


def untrusted_notice() -> str:
    """Return which settings of the working directory's file do not hold and why, or ""."""
    try:
        file, values = folder_settings(is_trusted=is_trusted)
    except ConfigError:
        return ""
    if not values:
        return ""
    return (
        f"{file.path} sets {', '.join(values)}, which can loosen what limits agents. That does not "
        "hold until you trust the file: see %oh_trust --show, or oh-jupyter trust --show"
    )
