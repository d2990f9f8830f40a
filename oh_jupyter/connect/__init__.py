"""``oh-jupyter connect``: our MCP server in the configuration files of agents' clients.

``clients`` says for each client where its file is and what an entry looks like, ``entries``
changes one entry in a file's text and leaves the rest as it is, ``files`` writes it with a
backup, ``command`` is the command.
"""

from __future__ import annotations

from oh_jupyter.connect.clients import CLIENTS, Client, Connection
from oh_jupyter.connect.entries import Place, remove_entry, set_entry

__all__ = ["CLIENTS", "Client", "Connection", "Place", "remove_entry", "set_entry"]
