"""Normalisation of paths.

A *key* is the canonical path that a backend sees: relative to the root, without empty, ``.`` and
``..`` segments and outer slashes.
"""

from __future__ import annotations

from oh_jupyter.errors import StorePathError


def path_key(path: str) -> str:
    """Normalise a path to its key, ``""`` for the root; raise StorePathError if it leaves it."""
    if not isinstance(path, str):
        raise StorePathError(
            f"A path in a store is a str, not {type(path).__name__}: {path!r}. Convert it first."
        )
    if "\0" in path:
        raise StorePathError(f"The path {path!r} contains a NUL character; remove it.")
    if not path.isascii():
        _check_unicode(path)
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not segments:
                raise StorePathError(
                    f"The path {path!r} leads out of the store; "
                    "pass a path below its root, without leading '..'."
                )
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return "/".join(segments)


def file_key(path: str) -> str:
    """Normalise the path of a file to its key; raise StorePathError if it names a directory."""
    key = path_key(path)
    if not key or path.rpartition("/")[2] in ("", ".", ".."):
        raise StorePathError(f"The path {path!r} names a directory; pass the path of a file.")
    return key


def join(directory: str, name: str) -> str:
    """Append a relative path to the key of a directory."""
    return f"{directory}/{name}" if directory else name


def parent(key: str) -> str:
    """Return the key of the parent directory of a key other than ``""``."""
    return key.rpartition("/")[0]


def _check_unicode(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorePathError(
            f"The path {path!r} contains a lone surrogate at position {error.start}, "
            "which UTF-8 cannot encode; remove it."
        ) from None
