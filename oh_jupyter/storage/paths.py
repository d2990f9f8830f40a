"""Which strings name something in a store, and what they name.

A *key* is the one spelling of a path that a backend gets to see: relative to the
store's root, without empty, ``.`` and ``..`` segments, and without a slash at either
end. The root itself is the key ``""``.
"""

from __future__ import annotations

from oh_jupyter.errors import StorePathError

__all__ = ["file_key", "join", "parent", "path_key"]


def path_key(path: str) -> str:
    """Normalise the path of a file or a directory to its key; ``""`` is the root.

    ``foo/bar``, ``/foo/bar``, ``./foo//bar/`` and ``foo/x/../bar`` are the same key. A
    ``..`` may be resolved by its text alone, because no store follows symbolic links. One
    that leaves the root, or names nothing that could be, is a StorePathError.
    """
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
    """Normalise a path that has to name a file to its key, which is never ``""``.

    The root, and a path that ends with a slash, is a StorePathError.
    """
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
