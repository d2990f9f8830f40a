"""Skills for exploring a repository, at ``$REPO_PATH`` or in the working directory.

An entity is named by its path, with ``:Qualified.name`` for a class or function. The texts are
those of OpenHands.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase

from oh_jupyter.errors import SkillError
from oh_jupyter.skills.repo.graph import (
    EDGE_TYPES,
    NODE_TYPES,
    Graph,
    Node,
    is_test_file,
    repository,
)

MODES = ("complete", "code_snippet", "preview", "fold")
"""Display modes of a hit, from the whole code to the name only."""

_PREVIEW_LINES = 100  # a longer class or file is shown as an outline
_MAX_HOPS = 20


@dataclass
class Hit:
    """Result of a search."""

    node: Node  # the entity, or the file of a snippet
    mode: str  # one of ``MODES``
    source: str  # reason of the match
    terms: list[str] = field(default_factory=list)
    first: int = 0  # lines of a snippet
    last: int = 0


def numbered(lines: Iterable[str], first: int) -> str:
    """Return numbered lines of code in a fence."""
    lines = list(lines)
    width = len(str(first + len(lines) - 1))
    rows = [f"{number:{width}} | {line}" for number, line in enumerate(lines, first)]
    return "\n".join(["```", *rows, "```"])


def show_hits(graph: Graph, hits: list[Hit]) -> str:
    """Render hits grouped by their search terms, each hit once."""
    groups: dict[tuple[str, ...], list[Hit]] = {}
    for hit in _merged(hits):
        groups.setdefault(tuple(hit.terms), []).append(hit)
    text = ""
    for terms, group in groups.items():
        quoted = ", ".join(f'"{term}"' for term in terms)
        text += f"##Searching for term {quoted}...\n### Search Result:\n"
        for mode in MODES:
            of_mode = [hit for hit in group if hit.mode == mode]
            if mode == "fold":
                text += _folded(of_mode)
            else:
                visible = _without_inner(of_mode) if mode == "preview" else of_mode
                text += "".join(_show(graph, hit) + "\n" for hit in visible)
        text += "\n\n"
    return text


def _merged(hits: list[Hit]) -> list[Hit]:
    merged: dict[str, Hit] = {}
    snippets = []
    for hit in hits:
        earlier = merged.get(hit.node.id)
        if hit.mode == "code_snippet":
            snippets.append(hit)
        elif earlier is None:
            merged[hit.node.id] = hit
        else:
            earlier.terms += [term for term in hit.terms if term not in earlier.terms]
            if MODES.index(hit.mode) < MODES.index(earlier.mode):
                earlier.mode, earlier.source = hit.mode, hit.source
    return [*snippets, *merged.values()]


def _without_inner(hits: list[Hit]) -> list[Hit]:
    """Remove hits inside another hit that is shown in full."""
    full = [hit.node for hit in hits if hit.node.last - hit.node.first < _PREVIEW_LINES]
    return [
        hit
        for hit in hits
        if not any(
            outer.path == hit.node.path
            and outer.id != hit.node.id
            and outer.first <= hit.node.first
            and hit.node.last <= outer.last
            for outer in full
        )
    ]


def _folded(hits: list[Hit]) -> str:
    if not hits:
        return ""
    text = "".join(f"Found {hit.node.kind} `{hit.node.id}`.\n" for hit in hits)
    text += f"Source: {hits[0].source}\n"
    if len(hits) > 1:
        return text + "Hint: Use more detailed query to get the full content of some if needed.\n\n"
    return text + f"Hint: Search `{hits[0].node.id}` for the full content if needed.\n\n"


def _show(graph: Graph, hit: Hit) -> str:
    node = hit.node
    if hit.mode == "code_snippet":
        lines = graph.files[node.path].lines[hit.first - 1 : hit.last]
        return (
            f"Found code snippet in file `{node.path}`.\nSource: {hit.source}\n"
            f"{numbered(lines, hit.first)}\n"
        )
    text = f"Found {node.kind} `{node.id}`.\nSource: {hit.source}\n"
    if node.kind == "directory":
        return text
    long = node.last - node.first > _PREVIEW_LINES and node.kind != "function"
    if hit.mode == "preview" and long:
        return text + (
            f"Just show the structure of this {node.kind} due to response length limitations:\n"
            f"{_outline(graph, node)}\n"
            f"Hint: Search `{node.id}` to get the full content if needed.\n"
        )
    return text + numbered(graph.code(node), node.first) + "\n"


def _outline(graph: Graph, node: Node) -> str:
    """Return the numbered header lines of an entity and of the entities in it."""
    lines = graph.files[node.path].lines
    prefix = f"{node.id}." if node.kind == "class" else f"{node.path}:"
    inner = {other.header for id, other in graph.nodes.items() if id.startswith(prefix)}
    numbers = sorted(inner | ({node.header} if node.kind == "class" else set()))
    width = len(str(node.last))
    rows = [f"{number:{width}} | {lines[number - 1]}" for number in numbers]
    return "\n".join(["```", *rows, "```"])


def show_tree(
    graph: Graph,
    root: str,
    direction: str,
    depth: int,
    kinds: list[str] | None,
    edges: list[str] | None,
) -> str:
    """Render the dependencies or dependents of an entity as a tree; expand each entity once."""
    hops = _MAX_HOPS if depth == -1 else depth
    rows = [root]
    expanded: set[str] = set()
    visited: set[tuple[str, str, str]] = set()

    def neighbours(node: str, direction: str) -> list[tuple[str, str, str]]:
        steps = []
        for one_way in ("downstream", "upstream") if direction == "both" else (direction,):
            down = one_way == "downstream"
            for edge, other in graph.uses(node) if down else graph.used_by(node):
                start, end = (node, other) if down else (other, node)
                if kinds is not None and graph.nodes[other].kind not in kinds:
                    continue
                if (edges is not None and edge not in edges) or is_test_file(other):
                    continue
                if (start, edge, end) not in visited:
                    visited.add((start, edge, end))
                    steps.append((edge if down else f"{edge}-by", other, one_way))
        return steps

    def expand(node: str, prefix: str, direction: str, level: int) -> None:
        if node in expanded or level >= hops:
            return
        expanded.add(node)
        steps = neighbours(node, direction)
        for number, (edge, other, one_way) in enumerate(steps, 1):
            last = number == len(steps)
            connector = f"{'└── ' if last else '├── '}{edge} ── "
            rows.append(f"{prefix}{connector}{other}")
            inner = prefix + (" " if last else "│") + " " * (len(connector) - 1)
            expand(other, inner, one_way, level + 1)

    expand(root, "", direction, 0)
    return "\n".join(rows)


_DIRECTIONS = ("downstream", "upstream", "both")
_PREFIXES = ("class ", "function ", "method ", "def ")
_CONTEXT_LINES = 20  # before and after a line outside functions and classes
_MAX_FULL_ENTITIES = 3  # entities of one name shown with their code
_MAX_RESULTS = 5  # of a search by words
_MAX_COMPARED_NAMES = 20_000  # comparing more names takes seconds
_NAME_MATCH = "Retrieved entity using keyword search (bm25)."
_CONTENT_MATCH = "Retrieved code content using keyword search (bm25)."


def explore_tree_structure(
    start_entities: list[str],
    direction: str = "downstream",
    traversal_depth: int = 2,
    entity_type_filter: list[str] | None = None,
    dependency_type_filter: list[str] | None = None,
) -> str:
    """Show the dependencies of repository entities, or their dependents, as trees.

    Args:
        start_entities: Start of each tree: ``path:Qualified.name`` for a class or function,
            a path for a file or directory, ``/`` for the repository.
        direction: ``downstream`` follows what an entity contains, imports, invokes and
            inherits from; ``upstream`` follows what contains, imports, invokes and
            inherits from it; ``both`` starts in both directions.
        traversal_depth: Number of steps to follow; -1 for no limit.
        entity_type_filter: Types to show: directory, file, class, function.
        dependency_type_filter: Types to follow: contains, imports, invokes, inherits.

    Returns:
        One tree for each entity, and suggestions for names that do not exist.
    """
    if direction not in _DIRECTIONS:
        raise SkillError(
            "Invalid value for `direction`: Expected one of 'downstream', 'upstream', and 'both'. "
            f"Received: '{direction}'."
        )
    if isinstance(traversal_depth, bool) or traversal_depth < -1:
        raise SkillError(
            "Invalid value for `traversal_depth`: It must be either -1 or a non-negative integer "
            f"(>= 0). Received: {traversal_depth}."
        )
    _check_types("entity_type_filter", entity_type_filter, NODE_TYPES)
    _check_types("dependency_type_filter", dependency_type_filter, EDGE_TYPES)
    graph = repository()
    parts, hints = [], ""
    for entity in _listed(start_entities):
        id = _id(entity)
        if id not in graph.nodes:
            hints += _candidates(graph, id)
        elif is_test_file(id):
            hints += (
                f"No results for the test entity: `{id}`. Please do not include any test "
                "entities.\n\n"
            )
        else:
            parts.append(
                show_tree(
                    graph,
                    id,
                    direction,
                    traversal_depth,
                    entity_type_filter,
                    dependency_type_filter,
                )
            )
    return "\n\n".join([*parts, hints] if hints else parts).strip()


def search_code_snippets(
    search_terms: list[str] | None = None,
    line_nums: list[int] | None = None,
    file_path_or_pattern: str | None = "**/*.py",
) -> str:
    """Search the repository for code, by names, words or line numbers.

    A term that names an entity (``path``, or ``path:Qualified.name``) shows the whole entity. A
    name of a file, class or function shows all entities of that name. Any other term shows
    the code that matches its words best.

    Args:
        search_terms: Names, words, or pieces of code.
        line_nums: Lines of one file to show, with the enclosing function or class.
        file_path_or_pattern: Files to search: a path, a part of one, or a pattern such as
            ``src/**/*.py``; for ``line_nums`` the path of the file.

    Returns:
        The matches of each term.
    """
    graph = repository()
    text = ""
    files = _matching(graph, file_path_or_pattern)
    if not files:
        text += (
            f"No files found for file pattern '{file_path_or_pattern}'. Will search all files.\n"
            "...\n"
        )
        files = set(graph.files)
    hits: list[Hit] = []
    missed = ""
    for term in _listed(search_terms or []):
        if is_test_file(_id(term)):
            text += (
                f"No results for test files: `{term}`. Please do not search for any test files.\n\n"
            )
            continue
        matches = _search(graph, term, files)
        hits += matches
        if not matches:
            missed += (
                f'##Searching for term "{term}"...\n### Search Result:\nNo locations found.\n\n'
            )
    if line_nums:
        path = _id(file_path_or_pattern or "")
        if path in graph.files:
            hits += _at_lines(graph, path, line_nums)
        else:
            text += "To search by `line_nums`, give the path of a file in `file_path_or_pattern`.\n"
    return (text + show_hits(graph, hits) + missed).strip()


def get_entity_contents(entity_names: list[str]) -> str:
    """Show the whole code of entities of the repository.

    Args:
        entity_names: ``path:Qualified.name`` for a class or function, a path for a file.

    Returns:
        Their code with line numbers.
    """
    graph = repository()
    text = ""
    for name in _listed(entity_names):
        text += f"##Searching for entity `{name}`...\n### Search Result:\n"
        node = graph.nodes.get(_id(name))
        if node is None:
            text += (
                "Invalid name. \nHint: Valid entity name should be formatted as "
                '"file_path:QualifiedName" or just "file_path".\n\n'
            )
            continue
        text += f"Found {node.kind} `{node.id}`.\n"
        text += f"Source: Exact match found for entity name `{node.id}`.\n"
        if node.kind != "directory":
            text += numbered(graph.code(node), node.first) + "\n"
        text += "\n\n"
    return text.strip()


def _listed(names: list[str] | str) -> list[str]:
    """Return a list of names; models sometimes pass a single string."""
    names = [names] if isinstance(names, str) else names
    return [name for name in (str(name).strip().strip(".") for name in names) if name]


def _id(name: str) -> str:
    """Convert a name written by an agent to the id of an entity."""
    root = os.path.realpath(os.environ.get("REPO_PATH") or ".")
    if name == root:
        return "/"
    name = name.removeprefix(root + "/").removeprefix("./")
    if name != "/":
        name = name.strip("/")
    return name.removesuffix(".__init__")


def _check_types(parameter: str, names: list[str] | None, known: tuple[str, ...]) -> None:
    unknown = [name for name in names or [] if name not in known]
    if unknown:
        raise SkillError(
            f"Invalid types {unknown} in `{parameter}`. Expected some of {list(known)}."
        )


def _candidates(graph: Graph, id: str) -> str:
    similar = [other for other in graph.nodes if (":" in other) == (":" in id)]
    close = (
        get_close_matches(id, similar, _MAX_RESULTS) if len(similar) < _MAX_COMPARED_NAMES else []
    )
    ranked = [other for other in graph.names.rank(id, _MAX_RESULTS) if other not in close]
    candidates = [*close, *ranked][:_MAX_RESULTS]
    if not candidates:
        return (
            f"The entity name `{id}` is invalid. There are no possible candidate entities in "
            "record.\n"
        )
    listed = "".join(f"{graph.nodes[other].kind}: `{other}`\n" for other in candidates)
    return (
        f"The entity name `{id}` is invalid. Based on your input, here are some candidate entities "
        f"you might be referring to:\n{listed}Source: {_NAME_MATCH}\n\n"
    )


def _matching(graph: Graph, pattern: str | None) -> set[str]:
    if not pattern:
        return set(graph.files)
    pattern = _id(pattern)
    if not any(sign in pattern for sign in "*?["):
        return {path for path in graph.files if pattern in path}
    # As in a shell, **/ also matches no directory.
    patterns = {pattern, pattern.replace("**/", "")}
    return {path for path in graph.files for one in patterns if fnmatchcase(path, one)}


def _search(graph: Graph, term: str, files: set[str]) -> list[Hit]:
    node = graph.nodes.get(_id(term))
    if node is not None:
        exact = f"Exact match found for entity name `{node.id}`."
        return [Hit(node, "complete", exact, [term])]
    name = term
    for prefix in _PREFIXES:
        if term.lower().startswith(prefix):
            name = term[len(prefix) :].strip()
    matches = [
        graph.nodes[id] for id in _of_name(graph, name.removesuffix("()")) if not is_test_file(id)
    ]
    matches = [node for node in matches if node.path in files] or matches
    if matches:
        source = f"Match found for entity name `{name}`."
        mode = "preview" if len(matches) <= _MAX_FULL_ENTITIES else "fold"
        return [Hit(node, mode, source, [term]) for node in matches]
    ranked = [graph.nodes[id] for id in graph.contents.rank(term, 10 * _MAX_RESULTS)]
    ranked = [node for node in ranked if node.path in files] or ranked
    hits = [
        Hit(node, "fold" if node.kind == "file" else "preview", _CONTENT_MATCH, [term])
        for node in ranked[:_MAX_RESULTS]
    ]
    named = [graph.nodes[id] for id in graph.names.rank(term, _MAX_FULL_ENTITIES)]
    return hits or [Hit(node, "fold", _NAME_MATCH, [term]) for node in named]


def _of_name(graph: Graph, name: str) -> list[str]:
    """Return the ids of entities with a name; a dotted name includes enclosing entities."""
    ids = graph.named(name)
    if ids:
        return ids
    *outer, last = name.split(".")
    within = {part.lower() for part in outer}
    ids = graph.named(last) or graph.named_like(last)
    return [id for id in ids if within <= set(re.split(r"[./:]", id.lower())[:-1])]


def _at_lines(graph: Graph, path: str, lines: list[int] | int) -> list[Hit]:
    numbers = [lines] if isinstance(lines, int) else lines
    total = graph.nodes[path].last
    invalid = [number for number in numbers if not 1 <= number <= total]
    if invalid:
        raise SkillError(f"`line_nums` {invalid} are not in {path}, which has {total} lines.")
    term = f"{path}:line {', '.join(map(str, numbers))}"
    source = f"Retrieved code context including {term}."
    hits: list[Hit] = []
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        enclosing = [
            node
            for node in graph.nodes.values()
            if node.path == path and node.id != path and node.first <= number <= node.last
        ]
        if enclosing:
            inner = min(enclosing, key=lambda node: node.last - node.first)
            hits.append(Hit(inner, "preview", source, [term]))
        elif spans and number - _CONTEXT_LINES <= spans[-1][1]:
            spans[-1][1] = min(total, number + _CONTEXT_LINES)
        else:
            spans.append([max(1, number - _CONTEXT_LINES), min(total, number + _CONTEXT_LINES)])
    file = graph.nodes[path]
    return hits + [Hit(file, "code_snippet", source, [term], *span) for span in spans]
