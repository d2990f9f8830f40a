"""How the repository skills show entities: the words are those of OpenHands' skills."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oh_jupyter.skills.repo.graph import Graph, Node, is_test_file

MODES = ("complete", "code_snippet", "preview", "fold")
"""How much of a hit is shown, from all to nothing but its name."""

_PREVIEW_LINES = 100  # of a class or file; a longer one is shown as an outline
_MAX_HOPS = 20


@dataclass
class Hit:
    """Something that a search found."""

    node: Node  # the entity, or the file of a snippet
    mode: str  # one of ``MODES``
    source: str  # why it was found
    terms: list[str] = field(default_factory=list)
    first: int = 0  # lines of a snippet
    last: int = 0


def numbered(lines: Iterable[str], first: int) -> str:
    """Lines of code with their numbers, in a fence."""
    listed = list(lines)
    width = len(str(first + len(listed) - 1))
    shown = [f"{number:{width}} | {line}" for number, line in enumerate(listed, first)]
    return "\n".join(["```", *shown, "```"])


def show_hits(graph: Graph, hits: list[Hit]) -> str:
    """Show what was found, by what was searched for; what several terms found comes once."""
    groups: dict[tuple[str, ...], list[Hit]] = {}
    for hit in _merged(hits):
        groups.setdefault(tuple(hit.terms), []).append(hit)
    text = ""
    for terms, found in groups.items():
        quoted = ", ".join(f'"{term}"' for term in terms)
        text += f"##Searching for term {quoted}...\n### Search Result:\n"
        for mode in MODES:
            of_mode = [hit for hit in found if hit.mode == mode]
            if mode == "fold":
                text += _folded(of_mode)
            else:
                shown = _without_inner(of_mode) if mode == "preview" else of_mode
                text += "".join(_show(graph, hit) + "\n" for hit in shown)
        text += "\n\n"
    return text


def _merged(hits: list[Hit]) -> list[Hit]:
    merged: dict[str, Hit] = {}
    snippets = []
    for hit in hits:
        known = merged.get(hit.node.id)
        if hit.mode == "code_snippet":
            snippets.append(hit)
        elif known is None:
            merged[hit.node.id] = hit
        else:
            known.terms += [term for term in hit.terms if term not in known.terms]
            if MODES.index(hit.mode) < MODES.index(known.mode):
                known.mode, known.source = hit.mode, hit.source
    return [*snippets, *merged.values()]


def _without_inner(hits: list[Hit]) -> list[Hit]:
    """Leave out what is inside another hit that is shown in full."""
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
    """The lines that name what an entity contains, with their numbers."""
    lines = graph.files[node.path].lines
    prefix = f"{node.id}." if node.kind == "class" else f"{node.path}:"
    inner = {other.header for id, other in graph.nodes.items() if id.startswith(prefix)}
    numbers = sorted(inner | ({node.header} if node.kind == "class" else set()))
    width = len(str(node.last))
    shown = [f"{number:{width}} | {lines[number - 1]}" for number in numbers]
    return "\n".join(["```", *shown, "```"])


def show_tree(
    graph: Graph,
    root: str,
    direction: str,
    depth: int,
    kinds: list[str] | None,
    edges: list[str] | None,
) -> str:
    """Show what an entity uses, or what uses it, as a tree that unfolds each entity once."""
    hops = _MAX_HOPS if depth == -1 else depth
    shown: list[str] = []
    unfolded: set[str] = set()
    walked: set[tuple[str, str, str]] = set()

    def neighbours(node: str, way: str) -> list[tuple[str, str, str]]:
        found = []
        ways = ("downstream", "upstream") if way == "both" else (way,)
        for one_way in ways:
            down = one_way == "downstream"
            for edge, other in graph.uses(node) if down else graph.used_by(node):
                start, end = (node, other) if down else (other, node)
                wanted = kinds is None or graph.nodes[other].kind in kinds
                if not wanted or (edges is not None and edge not in edges) or is_test_file(other):
                    continue
                if (start, edge, end) not in walked:
                    walked.add((start, edge, end))
                    found.append((edge if down else f"{edge}-by", other, one_way))
        return found

    def unfold(node: str, prefix: str, way: str, level: int) -> None:
        if node in unfolded or level >= hops:
            return
        unfolded.add(node)
        found = neighbours(node, way)
        for number, (edge, other, one_way) in enumerate(found, 1):
            last = number == len(found)
            connector = f"{'└── ' if last else '├── '}{edge} ── "
            shown.append(f"{prefix}{connector}{other}")
            inner = prefix + (" " if last else "│") + " " * (len(connector) - 1)
            unfold(other, inner, one_way, level + 1)

    shown.append(root)
    unfold(root, "", direction, 0)
    return "\n".join(shown)
