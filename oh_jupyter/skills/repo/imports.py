"""What files import, and which file of the repository that is."""

from __future__ import annotations

import posixpath
from collections.abc import Container
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node as SyntaxNode

__all__ = ["Import", "imported_file", "read_import"]

_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")


class Import(NamedTuple):
    """One imported name."""

    module: str  # ``a.b``, with leading dots where it is relative; for scripts the path
    name: str  # what is imported from it; "" for the module itself, ``*`` for all
    alias: str


def read_import(node: SyntaxNode) -> list[Import]:
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


def _text(node: SyntaxNode) -> str:
    return (node.text or b"").decode()
