"""Which strings name something in a store.

A *key* is the one spelling that a backend sees: from the root, without empty, ``.`` and ``..``
segments and outer slashes.
"""

from __future__ import annotations

from oh_jupyter.errors import StorePathError


def path_key(path: str) -> str:
    """Normalise a path to its key, ``""`` for the root; one that leads out is a StorePathError."""
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
                    "give a path below its root, without leading '..'."
                )
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return "/".join(segments)


def file_key(path: str) -> str:
    """Normalise a path that has to name a file to its key; a directory is a StorePathError."""
    key = path_key(path)
    if not key or path.rpartition("/")[2] in ("", ".", ".."):
        raise StorePathError(f"The path {path!r} names a directory; give the path of a file.")
    return key


def join(directory: str, name: str) -> str:
    """Put a name of one or several segments below a directory's key."""
    return f"{directory}/{name}" if directory else name


def parent(key: str) -> str:
    """Key of the directory that a key other than ``""`` lies in."""
    return key.rpartition("/")[0]


def _check_unicode(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorePathError(
            f"The path {path!r} contains a lone surrogate at position {error.start}, "
            "which has no UTF-8 form; use characters that can be encoded."
        ) from None
