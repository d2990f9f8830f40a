"""Uploads and downloads, piece by piece, and directory listings."""

from oh_jupyter.runtime.transfers.listing import list_directory
from oh_jupyter.runtime.transfers.transfers import StoreSink, Transfers, store_pieces

__all__ = ["StoreSink", "Transfers", "list_directory", "store_pieces"]
