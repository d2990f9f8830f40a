"""Syntax check of other languages by their tree-sitter grammars.

Each grammar is a package of its own, of which only those that are asked for are loaded.
The packs that have all of them in one either take 190 MB or download a grammar when it
is first used, which fails where there is no network.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from oh_jupyter.editor.lint.finding import Finding, Findings

__all__ = ["GRAMMARS", "lint_grammar"]


class _Grammar(NamedTuple):
    package: str
    function: str = "language"
    extra: bool = True  # whether it is among those of the extra `lint`


_CPP, _RUBY, _YAML = _Grammar("cpp"), _Grammar("ruby"), _Grammar("yaml")
_JAVASCRIPT, _BASH = _Grammar("javascript"), _Grammar("bash")
_OCAML = _Grammar("ocaml", "language_ocaml", extra=False)
_KOTLIN, _ELIXIR = _Grammar("kotlin", extra=False), _Grammar("elixir", extra=False)

GRAMMARS = {
    ".bash": _BASH,
    ".c": _Grammar("c"),
    ".cc": _CPP,
    ".cjs": _JAVASCRIPT,
    ".cpp": _CPP,
    ".cs": _Grammar("c-sharp"),
    ".css": _Grammar("css"),
    ".cxx": _CPP,
    ".ex": _ELIXIR,
    ".exs": _ELIXIR,
    ".go": _Grammar("go"),
    ".h": _Grammar("c"),
    ".hpp": _CPP,
    ".hs": _Grammar("haskell", extra=False),
    ".htm": _Grammar("html"),
    ".html": _Grammar("html"),
    ".java": _Grammar("java"),
    ".jl": _Grammar("julia", extra=False),
    ".js": _JAVASCRIPT,
    ".jsx": _JAVASCRIPT,
    ".kt": _KOTLIN,
    ".kts": _KOTLIN,
    ".lua": _Grammar("lua", extra=False),
    ".mjs": _JAVASCRIPT,
    ".ml": _OCAML,
    ".php": _Grammar("php", "language_php"),
    ".rb": _RUBY,
    ".rs": _Grammar("rust"),
    ".scala": _Grammar("scala", extra=False),
    ".sh": _BASH,
    ".swift": _Grammar("swift", extra=False),
    ".tf": _Grammar("hcl", extra=False),
    ".toml": _Grammar("toml"),
    ".ts": _Grammar("typescript", "language_typescript"),
    ".tsx": _Grammar("typescript", "language_tsx"),
    ".yaml": _YAML,
    ".yml": _YAML,
    ".zig": _Grammar("zig", extra=False),
}
"""The grammars by suffix."""


def lint_grammar(suffix: str, text: str) -> Findings:
    """Syntax errors by the tree-sitter grammar of a suffix, or which package is missing."""
    grammar = GRAMMARS[suffix]
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        module = importlib.import_module(f"tree_sitter_{grammar.package.replace('-', '_')}")
    except ImportError:
        package = f"tree-sitter-{grammar.package}"
        install = "'oh_jupyter[lint]'" if grammar.extra else package
        missing = (
            f"Linting {suffix} files needs the package {package}. "
            f"Install it with: pip install {install}"
        )
        return Findings(text, missing=missing, complete=False)
    language = tree_sitter.Language(getattr(module, grammar.function)())
    data = text.encode("utf-8", "surrogatepass")
    tree = tree_sitter.Parser(language).parse(data)
    return Findings(text, _errors(tree.root_node, data.split(b"\n")))


def _errors(root: Any, lines: list[bytes]) -> list[Finding]:
    found, nodes = [], [root]
    while nodes:
        node = nodes.pop()
        if not (node.has_error or node.is_missing):
            continue
        if node.is_missing or node.type == "ERROR":
            row, column = node.start_point
            before = lines[row][:column].decode("utf-8", "replace") if row < len(lines) else ""
            message = "Missing node" if node.is_missing else "Syntax error"
            found.append(Finding(row + 1, len(before) + 1, message))
        nodes += reversed(node.children)
    return sorted(set(found))
