"""Uploads and downloads in pieces."""

from oh_jupyter.runtime.transfers.transfers import StoreSink, Transfers, store_pieces

__all__ = ["StoreSink", "Transfers", "store_pieces"]
