"""What can be written into a store, and how it becomes bytes and text again."""

from __future__ import annotations

from oh_jupyter.errors import StoreContentError

__all__ = ["Contents", "contents_bytes", "contents_text"]

Contents = str | bytes | bytearray | memoryview
"""What can be written: text, which is stored as UTF-8, or bytes."""


def contents_bytes(contents: Contents, path: str) -> bytes:
    """Encode what is written; the path is for the StoreContentError if that is not possible."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    if not isinstance(contents, str):
        raise StoreContentError(
            f"{path!r} was not written: its contents are {type(contents).__name__}; "
            "give str or bytes."
        )
    try:
        return contents.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StoreContentError(
            f"{path!r} was not written: its text has a lone surrogate at position "
            f"{error.start}, which has no UTF-8 form; write bytes instead."
        ) from None


def contents_text(data: bytes, path: str) -> str:
    """Decode what is read; the path is for the StoreContentError if it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StoreContentError(
            f"{path!r} is not UTF-8 text (byte {error.start} of {len(data)}); "
            "read it with read_bytes()."
        ) from None
