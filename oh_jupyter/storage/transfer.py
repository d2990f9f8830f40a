"""Files from one store into another: many at a time, large ones piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from oh_jupyter.errors import StorePathError
from oh_jupyter.storage.base import FileInfo, FileStore
from oh_jupyter.storage.paths import join, path_key

LARGE_BYTES = 8 << 20
"""Bytes from which on a file is copied piece by piece, by itself."""

_MAX_GROUP_FILES = 256
_GROUP_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 20
_MAX_STREAMS = 4

Progress = Callable[[int, int], object]
"""Called with the bytes that were copied since the last call, and with all there are."""


@dataclass
class Transfer:
    """What a transfer did.

    Attributes:
        copied: Paths in the target that were written.
        deleted: Paths in the target that were deleted.
        unchanged: How many files were the same already.
        bytes: How many bytes were written.
    """

    copied: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unchanged: int = 0
    bytes: int = 0


def _files_below(store: FileStore, path: str) -> dict[str, FileInfo]:
    """Find all files of a directory by path below it, or the one file as ``""``."""
    key = path_key(path)
    start = store.info(key)
    if start["type"] == "file":
        return {"": start}
    found: dict[str, FileInfo] = {}
    waiting = [key]
    while waiting:
        for entry in store.entries(waiting.pop()):
            if entry["type"] == "directory":
                waiting.append(entry["path"])
            else:
                found[entry["path"][len(key) :].lstrip("/")] = entry
    return dict(sorted(found.items()))


def copy(
    source: FileStore,
    path: str,
    target: FileStore,
    target_path: str,
    progress: Progress | None = None,
) -> Transfer:
    """Copy a file, or a directory with everything below it.

    Args:
        source: Where from.
        path: What.
        target: Where to; it may be the same store.
        target_path: The new path; that of a file ending with a slash keeps its name.
        progress: Told how it goes on.

    Returns:
        What was copied.

    Raises:
        FileNotFoundError: If there is nothing to copy.
        StorePathError: If a directory shall be copied into itself.
    """
    found = _files_below(source, path)
    pairs = _pairs(path, found, target_path)
    if source is target and "" not in found:
        below = path_key(path) + "/" if path_key(path) else ""
        if (path_key(target_path) + "/").startswith(below):
            raise StorePathError(f"{path!r} cannot be copied into itself; choose another place.")
    return _carry(source, target, pairs, progress, Transfer())


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
    """Copy what differs, so that the target directory has all that the source has.

    A file is taken for the same if its size is, and the target's is not older; where a
    store knows no times, its contents are compared.

    Args:
        source: Where from.
        path: A directory.
        target: Where to.
        target_path: A directory.
        delete: Delete what the source does not have.
        checksum: Compare all contents of the same size.
        progress: Told how it goes on.

    Returns:
        What was done.

    Raises:
        FileNotFoundError: If there is no such source.
    """
    found = _files_below(source, path)
    pairs = _pairs(path, found, target_path)
    try:
        there = _files_below(target, target_path) if "" not in found else {}
    except FileNotFoundError:
        there = {}
    if "" in found:
        there = {"": target.info(pairs[0][1])} if target.exists(pairs[0][1]) else {}
    done = Transfer()
    wanted, doubtful = [], []
    for (name, info), pair in zip(found.items(), pairs, strict=True):
        other = there.get(name)
        if other is None or other["size"] != info["size"]:
            wanted.append(pair)
        elif checksum or not info["modified"] or not other["modified"]:
            doubtful.append(pair)
        elif other["modified"] < info["modified"]:
            wanted.append(pair)
        else:
            done.unchanged += 1
    for pair in doubtful:
        if _same(source, pair[0], target, pair[1]):
            done.unchanged += 1
        else:
            wanted.append(pair)
    _carry(source, target, wanted, progress, done)
    if delete:
        done.deleted = [join(path_key(target_path), name) for name in there.keys() - found.keys()]
        target.delete_many(done.deleted)
        done.deleted.sort()
    return done


Pair = tuple[str, str, int]
"""Path in the source, path in the target, and the size."""


def _pairs(path: str, found: dict[str, FileInfo], target_path: str) -> list[Pair]:
    start, end = path_key(path), path_key(target_path)
    if "" in found and (target_path.endswith("/") or not end):
        end = join(end, start.rpartition("/")[2])
    return [
        (info["path"], join(end, name) if name else end, info["size"] or 0)
        for name, info in found.items()
    ]


def _carry(
    source: FileStore,
    target: FileStore,
    pairs: Iterable[Pair],
    progress: Progress | None,
    done: Transfer,
) -> Transfer:
    """Copy files: small ones in groups, large ones a few at a time."""
    pairs = list(pairs)
    total = sum(size for _, _, size in pairs)

    def copied(path: str, size: int) -> None:
        done.copied.append(path)
        done.bytes += size
        if progress is not None:
            progress(size, total)

    def stream(pair: Pair) -> None:
        with source.open(pair[0], "rb") as reader, target.open(pair[1], "wb") as writer:
            while piece := reader.read(_CHUNK_BYTES):
                writer.write(piece)
                if progress is not None:
                    progress(len(piece), total)

    for group in _groups(pair for pair in pairs if pair[2] < LARGE_BYTES):
        contents = source.read_many([pair[0] for pair in group])
        target.write_many({pair[1]: contents[pair[0]] for pair in group})
        for _, path, size in group:
            copied(path, size)
    large = [pair for pair in pairs if pair[2] >= LARGE_BYTES]
    with ThreadPoolExecutor(_MAX_STREAMS, thread_name_prefix="oh-transfer") as pool:
        for pair, _ in zip(large, pool.map(stream, large), strict=True):
            done.copied.append(pair[1])
            done.bytes += pair[2]
    done.copied.sort()
    return done


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


def _same(one: FileStore, path: str, other: FileStore, other_path: str) -> bool:
    with one.open(path, "rb") as mine, other.open(other_path, "rb") as theirs:
        while piece := mine.read(_CHUNK_BYTES):
            if theirs.read(len(piece)) != piece:
                return False
        return not theirs.read(1)
