"""Copying and synchronising between stores: small files in groups, large files in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from oh_jupyter.background import thread_pool
from oh_jupyter.errors import StorePathError
from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.paths import join, path_key

LARGE_BYTES = 8 << 20
"""Minimum size of a file that is streamed in chunks."""

_MAX_GROUP_FILES = 256
_GROUP_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20
_MAX_STREAMS = 4

Progress = Callable[[int, int], object]
"""Called with the bytes copied since the last call, and the total."""


@dataclass
class Transfer:
    """Result of a transfer.

    Attributes:
        copied: Paths written in the target.
        deleted: Paths deleted in the target.
        unchanged: Number of files that were up to date.
        bytes: Number of bytes written.
    """

    copied: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    bytes: int = 0


def _files_below(store: FileStore, path: str) -> dict[str, FileInfo]:
    """Return all files of a directory by relative path, or a single file as ``""``."""
    key = path_key(path)
    start = store.info(key)
    if start["type"] == "file":
        return {"": start}
    files: dict[str, FileInfo] = {}
    directories = [key]
    while directories:
        for entry in store.entries(directories.pop()):
            if entry["type"] == "directory":
                directories.append(entry["path"])
            else:
                files[entry["path"][len(key) :].lstrip("/")] = entry
    return dict(sorted(files.items()))


def copy(
    source: FileStore,
    path: str,
    target: FileStore,
    target_path: str,
    progress: Progress | None = None,
) -> Transfer:
    """Copy a file, or a directory tree.

    Args:
        source: Source store.
        path: Path in the source.
        target: Target store; it may be the source.
        target_path: Path in the target; a trailing slash appends the name of a file.
        progress: Called as bytes are copied.

    Returns:
        The paths copied.

    Raises:
        FileNotFoundError: If the source path does not exist.
        StorePathError: If a directory would be copied into itself.
    """
    return copy_pairs(source, target, pairs_to_copy(source, path, target, target_path), progress)


def pairs_to_copy(source: FileStore, path: str, target: FileStore, target_path: str) -> list[Pair]:
    """Return the files that ``copy`` would copy; it raises the same errors."""
    files = _files_below(source, path)
    if source is target and "" not in files:
        prefix = path_key(path) + "/" if path_key(path) else ""
        if (path_key(target_path) + "/").startswith(prefix):
            raise StorePathError(
                f"{path!r} cannot be copied into itself; choose another target path."
            )
    return _pairs(path, files, target_path)


def copy_pairs(
    source: FileStore, target: FileStore, pairs: Iterable[Pair], progress: Progress | None = None
) -> Transfer:
    """Copy exactly these files; a missing one raises FileNotFoundError."""
    return _copy_pairs(source, target, pairs, progress, Transfer())


def sync(
    source: FileStore,
    path: str,
    target: FileStore,
    target_path: str,
    *,
    delete: bool = False,
    checksum: bool = False,
    progress: Progress | None = None,
) -> Transfer:
    """Copy new and changed files, so that the target has every file of the source.

    A file is unchanged if its size is equal and the target's copy is not older; if a store
    has no times, the contents are compared.

    Args:
        source: Source store.
        path: Directory in the source.
        target: Target store.
        target_path: Directory in the target.
        delete: Delete target files that the source does not have.
        checksum: Compare the contents of all files of equal size.
        progress: Called as bytes are copied.

    Returns:
        The paths copied and deleted.

    Raises:
        FileNotFoundError: If the source path does not exist.
    """
    files = _files_below(source, path)
    pairs = _pairs(path, files, target_path)
    try:
        existing = _files_below(target, target_path) if "" not in files else {}
    except FileNotFoundError:
        existing = {}
    if "" in files:
        existing = {"": target.info(pairs[0][1])} if target.exists(pairs[0][1]) else {}
    transfer = Transfer()
    changed, to_compare = [], []
    for (name, info), pair in zip(files.items(), pairs, strict=True):
        other = existing.get(name)
        if other is None or other["size"] != info["size"]:
            changed.append(pair)
        elif checksum or not info["modified"] or not other["modified"]:
            to_compare.append(pair)
        elif other["modified"] < info["modified"]:
            changed.append(pair)
        else:
            transfer.unchanged += 1
    for pair in to_compare:
        if _is_equal(source, pair[0], target, pair[1]):
            transfer.unchanged += 1
        else:
            changed.append(pair)
    _copy_pairs(source, target, changed, progress, transfer)
    if delete:
        target_key = path_key(target_path)
        transfer.deleted = sorted(join(target_key, name) for name in existing.keys() - files.keys())
        target.delete_many(transfer.deleted)
    return transfer


Pair = tuple[str, str, int]
"""Path in the source, path in the target, and the size."""


def _pairs(path: str, files: dict[str, FileInfo], target_path: str) -> list[Pair]:
    target_key = path_key(target_path)
    if "" in files and (target_path.endswith("/") or not target_key):
        target_key = join(target_key, path_key(path).rpartition("/")[2])
    return [
        (info["path"], join(target_key, name) if name else target_key, info["size"] or 0)
        for name, info in files.items()
    ]


def _copy_pairs(
    source: FileStore,
    target: FileStore,
    pairs: Iterable[Pair],
    progress: Progress | None,
    transfer: Transfer,
) -> Transfer:
    """Copy small files in groups, and large files over a few concurrent streams."""
    pairs = list(pairs)
    total = sum(size for _, _, size in pairs)

    def stream(pair: Pair) -> None:
        with source.open(pair[0], "rb") as reader, target.open(pair[1], "wb") as writer:
            while chunk := reader.read(_CHUNK_BYTES):
                writer.write(chunk)
                if progress is not None:
                    progress(len(chunk), total)

    for group in _groups(pair for pair in pairs if pair[2] < LARGE_BYTES):
        contents = source.read_many([pair[0] for pair in group])
        target.write_many({pair[1]: contents[pair[0]] for pair in group})
        for _, path, size in group:
            transfer.copied.append(path)
            transfer.bytes += size
            if progress is not None:
                progress(size, total)
    large = [pair for pair in pairs if pair[2] >= LARGE_BYTES]
    with thread_pool(_MAX_STREAMS, "oh-storage-transfer") as pool:
        for pair, _ in zip(large, pool.map(stream, large), strict=True):
            transfer.copied.append(pair[1])
            transfer.bytes += pair[2]
    transfer.copied.sort()
    return transfer


def _groups(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    group: list[Pair] = []
    size = 0
    for pair in pairs:
        if group and (len(group) >= _MAX_GROUP_FILES or size + pair[2] > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(pair)
        size += pair[2]
    if group:
        yield group


def _is_equal(one: FileStore, path: str, other: FileStore, other_path: str) -> bool:
    with one.open(path, "rb") as mine, other.open(other_path, "rb") as theirs:
        while chunk := mine.read(_CHUNK_BYTES):
            if theirs.read(len(chunk)) != chunk:
                return False
        return not theirs.read(1)
