"""Definitions, calls, base classes and imports of a source file."""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from oh_jupyter.skills.repo.languages import Language, parser, query

if TYPE_CHECKING:
    from tree_sitter import Node as SyntaxNode

_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")


class Import(NamedTuple):
    """One imported name."""

    module: str  # ``a.b``, with leading dots if it is relative; for scripts the path
    name: str  # the name imported from it; "" for the module itself, ``*`` for all
    alias: str


def _read_import(node: SyntaxNode) -> list[Import]:
    """Return the imports of a node; empty if it is not an import statement."""
    if node.type == "import_from_statement":
        return _read_from(node)
    if node.type != "import_statement":
        return []
    source = node.child_by_field_name("source")
    if source is not None:
        return _read_script(node, _text(source).strip("'\"`"))
    imports = []
    for child in node.children_by_field_name("name"):
        module, alias = _named(child)
        imports.append(Import(module, "", alias or module.partition(".")[0]))
    return imports


def _read_from(node: SyntaxNode) -> list[Import]:
    origin = node.child_by_field_name("module_name")
    module = _text(origin).replace(" ", "") if origin is not None else ""
    if any(child.type == "wildcard_import" for child in node.named_children):
        return [Import(module, "*", "")]
    names = [_named(child) for child in node.children_by_field_name("name")]
    return [Import(module, name, alias or name) for name, alias in names]


def _named(node: SyntaxNode) -> tuple[str, str]:
    if node.type == "aliased_import":
        name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
        return (_text(name) if name else "", _text(alias) if alias else "")
    return _text(node), ""


def _read_script(node: SyntaxNode, path: str) -> list[Import]:
    clause = next((c for c in node.named_children if c.type == "import_clause"), None)
    imports = [Import(path, "", "")]
    for part in clause.named_children if clause is not None else []:
        if part.type == "identifier":
            imports.append(Import(path, "default", _text(part)))
        for item in part.named_children if part.type == "named_imports" else []:
            name, alias = item.child_by_field_name("name"), item.child_by_field_name("alias")
            if name is not None:
                imports.append(Import(path, _text(name), _text(alias or name)))
    return imports


def imported_file(module: str, importer: str, files: Container[str]) -> str | None:
    """Return the file of an imported module; None if it is not in the repository."""
    folder = posixpath.dirname(importer)
    if posixpath.splitext(importer)[1] in _SCRIPTS:
        if not module.startswith("."):
            return None
        base = posixpath.normpath(posixpath.join(folder, module))
        stem, suffix = posixpath.splitext(base)
        options = [base, *(base + end for end in _SCRIPTS)]
        options += [f"{base}/index{end}" for end in _SCRIPTS]
        if suffix in _SCRIPTS:  # TypeScript writes ./a.js for ./a.ts
            options += [stem + end for end in _SCRIPTS]
        return next((option for option in options if option in files), None)
    level = len(module) - len(module.lstrip("."))
    parts = [part for part in module.split(".") if part]
    if level:
        start = folder.split("/") if folder else []
        roots = [start[: len(start) - level + 1]]
    else:
        # Packages may be at the top, in src, or beside the importer.
        above = folder.split("/") if folder else []
        roots = [[], ["src"], *(above[:depth] for depth in range(len(above), 0, -1))]
    for root in roots:
        base = "/".join([*root, *parts])
        for option in (f"{base}.py", f"{base}/__init__.py" if base else "__init__.py"):
            if option in files:
                return option
    return None


_VALUE_FUNCTIONS = {"arrow_function", "function_expression"}  # named by their variable
_WRAPPERS = {"decorated_definition", "export_statement", "template_declaration"}


@dataclass
class Definition:
    """A function or class."""

    name: str  # qualified with dots
    kind: str  # function or class
    first: int  # counted from 1, including decorators
    last: int
    header: int  # the line of its name
    # Without the calls of inner definitions; ``.name`` for an attribute.
    calls: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)


@dataclass
class SourceFile:
    """A parsed file."""

    path: str  # relative to the repository, with slashes
    lines: list[str]
    own_methods: bool = False
    # By name; a later definition replaces an earlier one.
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)


def parse_source(path: str, text: str, language: Language) -> SourceFile:
    """Parse a file, despite syntax errors."""
    lines = text.removesuffix("\n").split("\n")
    source = SourceFile(path, lines, language.own_methods)
    tree = parser(language).parse(text.encode())
    # Visiting all nodes instead of a query would take ten times as long.
    nodes = query(language).captures(tree.root_node).get("node", [])
    scopes: list[tuple[int, Definition | None, tuple[str, ...]]] = []
    for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
        while scopes and scopes[-1][0] <= node.start_byte:
            scopes.pop()
        _, owner, names = scopes[-1] if scopes else (0, None, ())
        scope = _enter(node, owner, names, source, language)
        if scope != (owner, names):
            scopes.append((node.end_byte, *scope))
    return source


def _enter(
    node: SyntaxNode,
    owner: Definition | None,
    names: tuple[str, ...],
    source: SourceFile,
    language: Language,
) -> tuple[Definition | None, tuple[str, ...]]:
    """Record a node's import, call or definition; return the scope of its children."""
    imports = _read_import(node)
    source.imports += imports
    if owner is not None:
        owner.imports += imports
    if node.type in language.calls and owner is not None:
        called = _called(node.child_by_field_name(language.calls[node.type]), node)
        if called:
            owner.calls.append(called)
    if node.type in language.scopes:
        scope = node.child_by_field_name(language.scopes[node.type])
        return owner, (*names, _text(scope)) if scope is not None else names
    kind = (
        "class"
        if node.type in language.classes and _has_body(node)
        else "function"
        if node.type in language.functions
        else ""
    )
    name = _name(node) if kind else ""
    if not name or (kind == "function" and _is_constructor(name, owner)):
        return owner, names
    qualified = ".".join((*names, *name.split("::")))
    outer = _outermost(node)
    definition = Definition(
        qualified,
        kind,
        outer.start_point[0] + 1,
        outer.end_point[0] + 1,
        node.start_point[0] + 1,
        bases=list(_bases(node, language)) if kind == "class" else [],
    )
    source.definitions[qualified] = definition
    return definition, (*names, name)


def _is_constructor(name: str, owner: Definition | None) -> bool:
    """Return whether a function is an ``__init__``, which OpenHands counts as part of its class."""
    return name == "__init__" and owner is not None and owner.kind == "class"


def _has_body(node: SyntaxNode) -> bool:
    """Return whether a class has a body; in C, ``struct name`` may only refer to a type."""
    return not node.type.endswith("_specifier") or node.child_by_field_name("body") is not None


def _name(node: SyntaxNode) -> str:
    named: SyntaxNode | None = node
    if node.type in _VALUE_FUNCTIONS:
        parent = node.parent
        if parent is None or parent.type not in ("variable_declarator", "public_field_definition"):
            return ""
        named = parent
    identifier = named.child_by_field_name("name") if named is not None else None
    declarator = node.child_by_field_name("declarator")
    while identifier is None and declarator is not None:  # C: inside pointers and parameters
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            identifier = declarator
        declarator = inner
    name = _text(identifier) if identifier is not None else ""
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")):
        return f"{_last_word(receiver)}.{name}" if _last_word(receiver) else name  # Go
    return name


def _outermost(node: SyntaxNode) -> SyntaxNode:
    """Return the node of a definition including decorators and ``export``."""
    if node.type in _VALUE_FUNCTIONS and node.parent is not None and node.parent.parent is not None:
        node = node.parent.parent
    while node.parent is not None and node.parent.type in _WRAPPERS:
        node = node.parent
    return node


def _called(node: SyntaxNode | None, call: SyntaxNode) -> str:
    if node is None:
        return ""
    last = _last_identifier(node)
    if last is None:
        return ""
    receiver = call.child_by_field_name("object") or call.child_by_field_name("receiver")
    attribute = last.id != node.id or receiver is not None
    return f".{_text(last)}" if attribute else _text(last)


def _last_identifier(node: SyntaxNode) -> SyntaxNode | None:
    """Return the last name of ``a.b.name``; None for calls of calls and subscripts."""
    for part in ("attribute", "property", "field", "name"):
        inner = node.child_by_field_name(part)
        if inner is not None:
            return _last_identifier(inner)
    is_name = "identifier" in node.type or node.type in ("constant", "name")
    return node if is_name else None


def _bases(node: SyntaxNode, language: Language) -> Iterator[str]:
    clauses = [child for child in node.named_children if child.type in language.bases]
    clauses += [
        child for name in language.bases if (child := node.child_by_field_name(name)) is not None
    ]
    for clause in {child.id: child for child in clauses}.values():
        pending = [clause]
        while pending:
            part = pending.pop()
            if part.type == "keyword_argument":
                continue
            last = _last_identifier(part)
            if last is not None:
                yield _text(last)
            elif "arguments" not in part.type or part.id == clause.id:
                pending += reversed(part.named_children)


def _last_word(node: SyntaxNode) -> str:
    words = [part for part in _walk(node) if part.type == "type_identifier"]
    return _text(words[0]) if words else ""


def _walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    yield node
    for child in node.named_children:
        yield from _walk(child)


def _text(node: SyntaxNode) -> str:
    return (node.text or b"").decode()
