"""The graph of each repository, kept in memory and brought up to date at every question.

Nothing is written, neither into the repository nor anywhere else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oh_jupyter.errors import SkillError
from oh_jupyter.skills.repo.graph import Graph
from oh_jupyter.skills.repo.languages import Language, language_of
from oh_jupyter.skills.repo.parse import SourceFile, parse_source

__all__ = ["repository"]

_MAX_BYTES = 1024 * 1024  # larger sources are generated, and nobody reads them
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "_index_data"}

_Stamp = tuple[int, int, int]


@dataclass
class _Index:
    stamps: dict[str, _Stamp] = field(default_factory=dict)
    graph: Graph = field(default_factory=lambda: Graph({}))


_indexes: dict[str, _Index] = {}
_lock = threading.Lock()  # one at a time: parsers are shared


def repository(root: str | None = None) -> Graph:
    """The graph of a repository as it is now.

    Only files that changed since the last question are parsed again.
    """
    place = os.path.realpath(root or os.environ.get("REPO_PATH") or ".")
    if not os.path.isdir(place):
        raise SkillError(
            f"There is no repository at {place}. Set REPO_PATH to the directory of one."
        )
    with _lock:
        index = _indexes.setdefault(place, _Index())
        found = {path: (stamp, language) for path, stamp, language in _sources(place)}
        stamps = {path: stamp for path, (stamp, _) in found.items()}
        if stamps != index.stamps:
            files = {}
            for path, (stamp, language) in found.items():
                if index.stamps.get(path) == stamp and path in index.graph.files:
                    files[path] = index.graph.files[path]
                elif source := _parse(place, path, language):
                    files[path] = source
            index.graph = Graph(files)
            index.stamps = stamps
        return index.graph


def _parse(root: str, path: str, language: Language) -> SourceFile | None:
    from oh_jupyter.editor.text.text_file import TextFile

    try:
        file = TextFile.parse(Path(root, path).read_bytes())
    except OSError:
        return None  # gone since it was listed
    return parse_source(path, file.text, language) if file is not None else None


def _sources(root: str) -> Iterator[tuple[str, _Stamp, Language]]:
    """Walk the repository: no links, no hidden folders, no environments."""
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            entries = sorted(os.scandir(os.path.join(root, folder)), key=lambda entry: entry.name)
        except OSError:
            continue
        if any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink() or entry.name.startswith("."):
                continue
            if entry.is_dir():
                if entry.name not in _SKIPPED:
                    folders.append(path)
                continue
            language = language_of(os.path.splitext(entry.name)[1])
            if language is not None and entry.is_file():
                status = entry.stat()
                if status.st_size <= _MAX_BYTES:
                    yield path, (status.st_mtime_ns, status.st_size, status.st_ino), language
