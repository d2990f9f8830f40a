"""Graph of a repository, kept in memory and updated for each query.

Words are ranked by Okapi BM25, a formula of two lines; the packages for it need numpy, or are not
maintained.
"""

from __future__ import annotations

import math
import os
import posixpath
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from oh_jupyter.errors import SkillError
from oh_jupyter.skills.repo.languages import Language, language_of
from oh_jupyter.skills.repo.parse import Definition, SourceFile, imported_file, parse_source

_K1, _B = 1.5, 0.75  # the usual values


def words(text: str) -> list[str]:
    """Split identifiers into lower-case words, the same for ``parseHTML`` and ``parse_html``."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+", text)
    return [part.lower() for part in parts]


class WordIndex:
    """Index of word counts by document."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self._sizes: dict[str, int] = {}
        self._counts: dict[str, dict[str, int]] = defaultdict(dict)
        for name, text in documents.items():
            tokens = words(text)
            self._sizes[name] = len(tokens)
            for word, count in Counter(tokens).items():
                self._counts[word][name] = count

    def rank(self, query: str, count: int) -> list[str]:
        """Return the names of the best documents that contain a word of the query."""
        total = len(self._sizes)
        average = sum(self._sizes.values()) / total if total else 0.0
        scores: dict[str, float] = defaultdict(float)
        for word in set(words(query)):
            counts = self._counts.get(word, {})
            weight = math.log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
            for name, frequency in counts.items():
                length = 1 - _B + _B * self._sizes[name] / average
                scores[name] += weight * frequency * (_K1 + 1) / (frequency + _K1 * length)
        return sorted(scores, key=lambda name: (-scores[name], name))[:count]


NODE_TYPES = ("directory", "file", "class", "function")
"""Types of nodes, as in OpenHands."""

EDGE_TYPES = ("contains", "inherits", "invokes", "imports")
"""Types of edges, as in OpenHands."""

ROOT = "/"


@dataclass(frozen=True)
class Node:
    """One entity."""

    id: str  # ``path``, or ``path:Qualified.name``; the root is ``/``
    kind: str  # one of ``NODE_TYPES``
    path: str  # its file, or the directory itself
    first: int = 1
    last: int = 0  # for a directory
    header: int = 1  # the line of its name

    @property
    def name(self) -> str:
        """Its name without those of enclosing entities."""
        return re.split(r"[:./]", self.id)[-1] if ":" in self.id else posixpath.basename(self.id)


class Graph:
    """Entities and their dependencies."""

    def __init__(self, files: dict[str, SourceFile]) -> None:
        """Build the graph from parsed files."""
        self.files = files
        self.nodes: dict[str, Node] = {ROOT: Node(ROOT, "directory", ROOT)}
        self._down: dict[str, dict[tuple[str, str], None]] = {}
        self._up: dict[str, dict[tuple[str, str], None]] = {}
        self._by_name: dict[str, list[str]] = {}
        for path in sorted(files):
            self._add_file(files[path])
        for node in self.nodes.values():
            self._by_name.setdefault(node.name, []).append(node.id)
        for path in sorted(files):
            self._add_dependencies(files[path])

    def uses(self, node: str) -> Iterator[tuple[str, str]]:
        """Yield edge types and ids of what an entity contains, imports, invokes or inherits."""
        yield from self._down.get(node, ())

    def used_by(self, node: str) -> Iterator[tuple[str, str]]:
        """Yield edge types and ids of what contains, imports, invokes or inherits an entity."""
        yield from self._up.get(node, ())

    def named(self, name: str) -> list[str]:
        """Return the ids of the entities with an unqualified name."""
        return self._by_name.get(name, [])

    def named_like(self, name: str) -> list[str]:
        """Return the ids of the entities with a name, ignoring case and file suffixes."""
        name = name.lower()
        return [
            id
            for other, ids in self._by_name.items()
            if name in (other.lower(), posixpath.splitext(other)[0].lower())
            for id in ids
        ]

    def code(self, node: Node) -> list[str]:
        """Return the lines of an entity."""
        source = self.files.get(node.path)
        return source.lines[node.first - 1 : node.last] if source is not None else []

    @cached_property
    def names(self) -> WordIndex:
        """Word index of the ids, without test files."""
        return WordIndex({id: id for id in self.nodes if not is_test_file(id)})

    @cached_property
    def contents(self) -> WordIndex:
        """Word index of the code; each line belongs to its innermost entity."""
        texts: dict[str, list[str]] = {}
        for path, source in self.files.items():
            if is_test_file(path):
                continue
            owners = [path] * len(source.lines)
            for name, definition in source.definitions.items():  # outer ones come first
                size = definition.last - definition.first + 1
                owners[definition.first - 1 : definition.last] = [f"{path}:{name}"] * size
            for owner, line in zip(owners, source.lines, strict=True):
                texts.setdefault(owner, []).append(line)
        return WordIndex({owner: "\n".join(lines) for owner, lines in texts.items()})

    def _add_file(self, source: SourceFile) -> None:
        self.nodes[source.path] = Node(source.path, "file", source.path, 1, len(source.lines))
        child = source.path
        while child != ROOT:
            parent = posixpath.dirname(child) or ROOT
            exists = parent in self.nodes
            if not exists:
                self.nodes[parent] = Node(parent, "directory", parent)
            self._edge(parent, "contains", child)
            if exists:
                break
            child = parent
        for name, item in source.definitions.items():
            id = f"{source.path}:{name}"
            self.nodes[id] = Node(id, item.kind, source.path, item.first, item.last, item.header)
        for name in source.definitions:
            outer = name.rpartition(".")[0]
            while outer and outer not in source.definitions:
                outer = outer.rpartition(".")[0]
            parent = f"{source.path}:{outer}" if outer else source.path
            self._edge(parent, "contains", f"{source.path}:{name}")

    def _edge(self, start: str, kind: str, end: str) -> None:
        self._down.setdefault(start, {})[kind, end] = None
        self._up.setdefault(end, {})[kind, start] = None

    def _add_dependencies(self, source: SourceFile) -> None:
        names = self._imported(source.path, source)
        for name, definition in source.definitions.items():
            id = f"{source.path}:{name}"
            imports = names | self._imported(id, definition)
            for base in definition.bases:
                for target in self._resolve(source, name, base, imports):
                    if target != id and self.nodes[target].kind == "class":
                        self._edge(id, "inherits", target)
            for called in definition.calls:
                for target in self._resolve(source, name, called, imports):
                    if self.nodes[target].kind in ("class", "function"):
                        self._edge(id, "invokes", target)

    def _imported(self, id: str, owner: SourceFile | Definition) -> dict[str, str]:
        """Add the edges of imports; return the ids of the imported names."""
        names: dict[str, str] = {}
        importer = id.partition(":")[0]
        for item in owner.imports:
            dot = "" if item.module.endswith(".") else "."
            target = None
            if item.name not in ("", "*", "default"):
                target = imported_file(f"{item.module}{dot}{item.name}", importer, self.files)
            module = imported_file(item.module, importer, self.files)
            if target is None and module is not None:
                inner = f"{module}:{item.name}"
                target = inner if inner in self.nodes else self._reexported(module, item.name)
            if target is not None and target != id:
                self._edge(id, "imports", target)
                names[item.alias] = target
            if item.name == "*" and module is not None:
                names |= {
                    name: f"{module}:{name}"
                    for name in self.files[module].definitions
                    if "." not in name
                }
        return names

    def _reexported(self, module: str, name: str) -> str:
        """Return the entity that a package re-exports, or the package itself if it is unknown."""
        for item in self.files[module].imports:
            if item.alias == name and item.name:
                origin = imported_file(item.module, module, self.files)
                inner = f"{origin}:{item.name}"
                if origin is not None and inner in self.nodes:
                    return inner
        return module

    def _resolve(
        self, source: SourceFile, owner: str, called: str, imports: dict[str, str]
    ) -> list[str]:
        """Return the ids that a name refers to inside a definition."""
        name = called.lstrip(".")
        scope = owner
        while not called.startswith("."):
            inner = f"{scope}.{name}" if scope else name
            holder = source.definitions.get(scope)
            # In most languages, methods need a qualifier in other methods of their class.
            is_visible = source.own_methods or holder is None or holder.kind == "function"
            if inner in source.definitions and is_visible:
                return [f"{source.path}:{inner}"]
            if not scope:
                return [imports[name]] if name in imports else []
            scope = scope.rpartition(".")[0]
        # An attribute: of its own class, otherwise the only entity of that name.
        while scope:
            scope = scope.rpartition(".")[0]
            holder = source.definitions.get(scope)
            if (
                holder is not None
                and holder.kind == "class"
                and (f"{scope}.{name}" in source.definitions)
            ):
                return [f"{source.path}:{scope}.{name}"]
        candidates = [id for id in self._by_name.get(name, []) if ":" in id]
        return candidates if len(candidates) == 1 else []


def is_test_file(id: str) -> bool:
    """Return whether a word of an entity's path starts with ``test``, as in OpenHands."""
    path = id.partition(":")[0].lower()
    return any(word.startswith("test") for word in re.split(r"[ _/]", path))


_MAX_BYTES = 1024 * 1024  # larger sources are usually generated
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "_index_data"}

_Fingerprint = tuple[int, int, int]


@dataclass
class _Index:
    fingerprints: dict[str, _Fingerprint] = field(default_factory=dict)
    graph: Graph = field(default_factory=lambda: Graph({}))


_indexes: dict[str, _Index] = {}
_lock = threading.Lock()  # one at a time: parsers are shared


def repository() -> Graph:
    """Return the current graph of the repository; parse only changed files."""
    root = os.path.realpath(os.environ.get("REPO_PATH") or ".")
    if not os.path.isdir(root):
        raise SkillError(f"There is no repository at {root}. Set REPO_PATH to its directory.")
    with _lock:
        index = _indexes.setdefault(root, _Index())
        sources = {path: (fingerprint, language) for path, fingerprint, language in _sources(root)}
        fingerprints = {path: fingerprint for path, (fingerprint, _) in sources.items()}
        if fingerprints != index.fingerprints:
            files = {}
            for path, (fingerprint, language) in sources.items():
                if index.fingerprints.get(path) == fingerprint and path in index.graph.files:
                    files[path] = index.graph.files[path]
                elif source := _parse(root, path, language):
                    files[path] = source
            index.graph = Graph(files)
            index.fingerprints = fingerprints
        return index.graph


def _parse(root: str, path: str, language: Language) -> SourceFile | None:
    from oh_jupyter.editor.text.text_file import TextFile

    try:
        file = TextFile.parse(Path(root, path).read_bytes())
    except OSError:
        return None  # deleted since it was listed
    return parse_source(path, file.text, language) if file is not None else None


def _sources(root: str) -> Iterator[tuple[str, _Fingerprint, Language]]:
    """Walk the repository, except links, hidden folders and virtual environments."""
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
