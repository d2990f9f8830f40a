"""Which strings name something in a store, and what they name.

A *key* is the one spelling of a path that a backend gets to see: relative to the
store's root, without empty, ``.`` and ``..`` segments, and without a slash at either
end. The root itself is the key ``""``.
"""

from __future__ import annotations

from oh_jupyter.errors import StorePathError

__all__ = ["file_key", "join", "parent", "path_key"]


def path_key(path: str) -> str:
    """Find the key that a path of a file or a directory stands for.

    ``foo/bar``, ``/foo/bar``, ``./foo//bar/`` and ``foo/x/../bar`` are the same key. A
    ``..`` may be resolved by its text alone, because no store follows symbolic links.

    Args:
        path: A path as the user writes it; a leading slash is the root of the store.

    Returns:
        The key, ``""`` for the root.

    Raises:
        StorePathError: If the path leaves the root, or no file could have that name.
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
    """Find the key of a path that has to name a file.

    Args:
        path: A path as the user writes it.

    Returns:
        The key, never ``""``.

    Raises:
        StorePathError: As `path_key`, and if the path can only be a directory: the root,
            or one that ends with a slash.
    """
    key = path_key(path)
    if not key or path.rpartition("/")[2] in ("", ".", ".."):
        raise StorePathError(f"The path {path!r} names a directory; give the path of a file.")
    return key


def join(directory: str, name: str) -> str:
    """Put a name below a directory's key.

    Args:
        directory: A key, ``""`` for the root.
        name: One segment or several.

    Returns:
        The key of both.
    """
    return f"{directory}/{name}" if directory else name


def parent(key: str) -> str:
    """Find the directory that a key lies in.

    Args:
        key: A key other than ``""``.

    Returns:
        The key of the directory, ``""`` for the root.
    """
    return key.rpartition("/")[0]


def _check_unicode(path: str) -> None:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise StorePathError(
            f"The path {path!r} contains a lone surrogate at position {error.start}, "
            "which has no UTF-8 form; use characters that can be encoded."
        ) from None
