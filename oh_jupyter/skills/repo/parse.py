"""One source file: what it defines, calls, inherits from and imports."""

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

    module: str  # ``a.b``, with leading dots where it is relative; for scripts the path
    name: str  # what is imported from it; "" for the module itself, ``*`` for all
    alias: str


def _read_import(node: SyntaxNode) -> list[Import]:
    """What an import statement imports; nothing for any other node."""
    if node.type == "import_from_statement":
        return _read_from(node)
    if node.type != "import_statement":
        return []
    source = node.child_by_field_name("source")
    if source is not None:
        return _read_script(node, _text(source).strip("'\"`"))
    found = []
    for child in node.children_by_field_name("name"):
        module, alias = _named(child)
        found.append(Import(module, "", alias or module.partition(".")[0]))
    return found


def _read_from(node: SyntaxNode) -> list[Import]:
    origin = node.child_by_field_name("module_name")
    module = _text(origin).replace(" ", "") if origin is not None else ""
    if any(child.type == "wildcard_import" for child in node.named_children):
        return [Import(module, "*", "")]
    found = []
    for child in node.children_by_field_name("name"):
        name, alias = _named(child)
        found.append(Import(module, name, alias or name))
    return found


def _named(node: SyntaxNode) -> tuple[str, str]:
    if node.type == "aliased_import":
        name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
        return (_text(name) if name else "", _text(alias) if alias else "")
    return _text(node), ""


def _read_script(node: SyntaxNode, path: str) -> list[Import]:
    clause = next((c for c in node.named_children if c.type == "import_clause"), None)
    found = [Import(path, "", "")]
    for part in clause.named_children if clause is not None else []:
        if part.type == "identifier":
            found.append(Import(path, "default", _text(part)))
        for item in part.named_children if part.type == "named_imports" else []:
            name, alias = item.child_by_field_name("name"), item.child_by_field_name("alias")
            if name is not None:
                found.append(Import(path, _text(name), _text(alias or name)))
    return found


def imported_file(module: str, importer: str, files: Container[str]) -> str | None:
    """The file of an imported module; None if it is not one of the repository."""
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
        # Where the packages are is not known: at the top, in src, or beside the importer.
        above = folder.split("/") if folder else []
        roots = [[], ["src"], *(above[:depth] for depth in range(len(above), 0, -1))]
    for root in roots:
        base = "/".join([*root, *parts])
        for option in (f"{base}.py", f"{base}/__init__.py" if base else "__init__.py"):
            if option in files:
                return option
    return None


_VALUE_FUNCTIONS = {"arrow_function", "function_expression"}  # they get the name of a variable
_WRAPPERS = {"decorated_definition", "export_statement", "template_declaration"}


@dataclass
class Definition:
    """A function or class."""

    name: str  # with those of what it is in, joined by dots
    kind: str  # function or class
    first: int  # lines are counted from 1; decorators belong to it
    last: int
    header: int  # the line of its name
    # Without what is called in definitions inside; ``.name`` for an attribute of something.
    calls: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)


@dataclass
class SourceFile:
    """A parsed file."""

    path: str  # relative to the repository, with slashes
    lines: list[str]
    own_methods: bool = False
    # By name; where a name is defined twice, the later one.
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)


def parse_source(path: str, text: str, language: Language) -> SourceFile:
    """Parse a file. Where it has errors, the rest of it is still understood."""
    lines = text.removesuffix("\n").split("\n")
    source = SourceFile(path, lines, language.own_methods)
    tree = parser(language).parse(text.encode())
    # A query finds the nodes that matter; to look at all of them takes ten times as long.
    found = query(language).captures(tree.root_node).get("node", [])
    inside: list[tuple[int, Definition | None, tuple[str, ...]]] = []
    for node in sorted(found, key=lambda node: (node.start_byte, -node.end_byte)):
        while inside and inside[-1][0] <= node.start_byte:
            inside.pop()
        _, owner, names = inside[-1] if inside else (0, None, ())
        entered = _enter(node, owner, names, source, language)
        if entered != (owner, names):
            inside.append((node.end_byte, *entered))
    return source


def _enter(
    node: SyntaxNode,
    owner: Definition | None,
    names: tuple[str, ...],
    source: SourceFile,
    language: Language,
) -> tuple[Definition | None, tuple[str, ...]]:
    """Note what a node says, and say what its children are in."""
    imported = _read_import(node)
    if imported:
        source.imports += imported
        if owner is not None:
            owner.imports += imported
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
    """As in OpenHands, ``__init__`` is no entity of its own but a part of its class."""
    return name == "__init__" and owner is not None and owner.kind == "class"


def _has_body(node: SyntaxNode) -> bool:
    """In C, ``struct name`` is also a mere mention of a type."""
    return not node.type.endswith("_specifier") or node.child_by_field_name("body") is not None


def _name(node: SyntaxNode) -> str:
    named: SyntaxNode | None = node
    if node.type in _VALUE_FUNCTIONS:
        parent = node.parent
        if parent is None or parent.type not in ("variable_declarator", "public_field_definition"):
            return ""
        named = parent
    found = named.child_by_field_name("name") if named is not None else None
    declarator = node.child_by_field_name("declarator")
    while found is None and declarator is not None:  # C: pointers and parameters around it
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            found = declarator
        declarator = inner
    name = _text(found) if found is not None else ""
    if node.type == "method_declaration" and (receiver := node.child_by_field_name("receiver")):
        return f"{_last_word(receiver)}.{name}" if _last_word(receiver) else name  # Go
    return name


def _outermost(node: SyntaxNode) -> SyntaxNode:
    """The definition with its decorators, ``export`` and the like."""
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
    """The name at the end of ``a.b.name``; nothing for calls of calls and subscripts."""
    for part in ("attribute", "property", "field", "name"):
        inner = node.child_by_field_name(part)
        if inner is not None:
            return _last_identifier(inner)
    named = "identifier" in node.type or node.type in ("constant", "name")
    return node if named else None


def _bases(node: SyntaxNode, language: Language) -> Iterator[str]:
    listed = [child for child in node.named_children if child.type in language.bases]
    listed += [
        found for name in language.bases if (found := node.child_by_field_name(name)) is not None
    ]
    for clause in {child.id: child for child in listed}.values():
        waiting = [clause]
        while waiting:
            part = waiting.pop()
            if part.type == "keyword_argument":
                continue
            last = _last_identifier(part)
            if last is not None:
                yield _text(last)
            elif "arguments" not in part.type or part.id == clause.id:
                waiting += reversed(part.named_children)


def _last_word(node: SyntaxNode) -> str:
    words = [part for part in _walk(node) if part.type == "type_identifier"]
    return _text(words[0]) if words else ""


def _walk(node: SyntaxNode) -> Iterator[SyntaxNode]:
    yield node
    for child in node.named_children:
        yield from _walk(child)


def _text(node: SyntaxNode) -> str:
    return (node.text or b"").decode()
