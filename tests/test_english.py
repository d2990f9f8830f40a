"""Docstrings, comments, messages, names and pages use plain words, also in the tests.

The list holds words of a dialect that the project once had and that no reader of the field
speaks.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path
    for folder in ("oh_jupyter", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
)
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "notebooks/*.ipynb")
    for page in ROOT.glob(pattern)
    if {"_build", "tutorials"}.isdisjoint(page.parts)
)
SCRIPTS = sorted((ROOT / "labextension" / "src").rglob("*.ts*"))
TOOLS = sorted(
    path
    for pattern in ("scripts/*", ".ci/run", ".github/**/*.yml", "plugins/**/*.md", "pyproject.toml")
    for path in [ROOT / "Makefile", *ROOT.glob(pattern)]
    if path.is_file()
)

DIALECT = re.compile(
    r"\b(anew|whoever|whom|begun|gone on|go on|goes on|going on|taken back"
    r"|for good|as people do|(?<!stand )in the way(?! of)|(?-i:that are none)"
    r"|(?:is|are|be|was|were|been) told|hand(?:s|ed)? over|slips? by|next to nothing)\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"(What|Who|Whoever|Whose|Where|How|Look whether)\b")
DIALECT_NAMES = {"found", "told", "said", "given", "meant", "kept", "going_on", "whoever", "place"}


def where(path: Path, line: int) -> str:
    """Return the place of a finding as editors open it."""
    return f"{path.relative_to(ROOT)}:{line}"


def texts(nodes: list[ast.AST], source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string literal and comment of a module."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    if not DIALECT.search(source):
        return  # splitting a module into tokens takes ten times as long
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and docstring of a module, its classes and functions."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def local_names(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each variable that a function assigns."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in ast.walk(node):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    yield each.lineno, each.id


def error_names(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and name of each caught exception."""
    for node in nodes:
        if isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name


def dialect(text: str) -> str | None:
    """Return the first word of the list in a text."""
    match = DIALECT.search(" ".join(text.split()))
    return match[0] if match else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_are_in_plain_english(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    nodes = list(ast.walk(ast.parse(source)))
    findings = [
        f"{where(path, line)}: {word!r}"
        for line, text in texts(nodes, source)
        if (word := dialect(text))
    ]
    findings += [
        f"{where(path, line)}: the docstring begins with {text.split()[0]!r}"
        for line, text in docstrings(nodes)
        if CLAUSE.match(text)
    ]
    findings += [
        f"{where(path, line)}: a variable named {name!r}"
        for line, name in local_names(nodes)
        if name in DIALECT_NAMES
    ]
    findings += [
        f"{where(path, line)}: an error named {name!r}"
        for line, name in error_names(nodes)
        if name in DIALECT_NAMES or name == "problem"
    ]
    assert findings == []


@pytest.mark.parametrize(
    "path", sorted({*PAGES, *SCRIPTS, *TOOLS}), ids=lambda path: str(path.relative_to(ROOT))
)
def test_pages_scripts_and_the_extension_are_in_plain_english(path: Path) -> None:
    findings = [
        f"{where(path, number)}: {word!r}"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (word := dialect(line))
    ]
    assert findings == []


def test_the_list_finds_the_dialect() -> None:
    assert dialect("Whoever waits\nis told anew.") == "Whoever"
    assert dialect("Every waiter has been notified.") is None
