"""Lint report of an edit: the problems that it introduced.

Python by its parser and pyflakes, which find what flake8, slow to start, would call fatal; others
by tree-sitter grammars, each a package of its own, since packs take 190 MB or download.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from oh_jupyter.config import Settings
from oh_jupyter.editor.notebook.cells import Cell, Notebook
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.text.line_diff import changed_lines


class Finding(NamedTuple):
    """One problem."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Findings:
    """Everything that was found in a text."""

    text: str
    findings: list[Finding] = field(default_factory=list)
    missing: str = ""  # which package is not installed, and how to get it; "" if all are
    complete: bool = True


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


def _lint_grammar(suffix: str, text: str) -> Findings:
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


_CODES = {"UndefinedName": "F821", "UndefinedExport": "F822", "DuplicateArgument": "F831"}
_NOQA = re.compile(r"# noqa(?::[\s]?(?P<codes>[A-Z]\d+(?:[,\s]+[A-Z]\d+)*))?", re.IGNORECASE)
_NOQA_FILE = re.compile(r"^\s*# flake8[:=]\s*noqa\s*$", re.IGNORECASE | re.MULTILINE)
_NO_PYFLAKES = (
    "Only the syntax was checked: to find undefined names needs the package pyflakes. Install it "
    "with: pip install 'oh_jupyter[lint]'"
)
# Names that IPython gives to every cell.
_IPYTHON_NAMES = ("In", "Out", "_", "__", "___", "display", "exit", "get_ipython", "quit")
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?{1,2}\s*)$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w, .\[\]]+=\s*)[%!].*$")
# Cell magics whose body is still Python.
_PYTHON_MAGIC = re.compile(r"^%%(?:time|timeit|capture|prun|python3?|debug)\b")
_NAME = "<lint>"
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def _lint_python(text: str) -> Findings:
    """Findings in a module."""
    if _NOQA_FILE.search(text):
        return Findings(text)
    error = _syntax_error(text)
    if error is not None:
        return Findings(text, [error])
    return _semantic_findings(text, text)


def _lint_cells(notebook: Notebook) -> Findings:
    """Findings in the code cells of a notebook, which share their names."""
    listing = notebook.listing(executions=False)
    if _language(notebook) != "python":
        return Findings(listing)
    pieces, errors = [], []
    for cell in notebook.cells:
        code = _code(cell)
        pieces += ["#", code]
        error = _syntax_error(code, _TOP_LEVEL_AWAIT)
        if error is not None:
            errors.append(error._replace(line=error.line + cell.line))
    if errors:
        return Findings(listing, errors)
    return _semantic_findings("\n".join(pieces), listing, _IPYTHON_NAMES, _TOP_LEVEL_AWAIT)


def _language(notebook: Notebook) -> str:
    metadata = notebook.top["metadata"].value if "metadata" in notebook.top else {}
    for key, name in (("language_info", "name"), ("kernelspec", "language")):
        value = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(value, dict) and isinstance(value.get(name), str):
            return str(value[name]).lower()
    return "python"


def _code(cell: Cell) -> str:
    """Turn a cell into Python of as many lines."""
    lines = cell.source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if cell.type != "code" or (first.startswith("%%") and not _PYTHON_MAGIC.match(first)):
        return "\n".join("#" for _ in lines)
    return "\n".join(_ASSIGNED_MAGIC.sub(r"\1None", _MAGIC.sub(r"\1pass", line)) for line in lines)


def _syntax_error(text: str, flags: int = 0) -> Finding | None:
    # The compiler's warnings, such as of an unknown escape, are not for the kernel's log.
    warnings.filterwarnings("ignore", module=_NAME)
    try:
        compile(text, _NAME, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    except SyntaxError as error:
        message = f"E999 {type(error).__name__}: {error.msg}"
        # flake8 takes the parser's column, which counts from 1, for one that counts from 0.
        return Finding(error.lineno or 1, (error.offset or 0) + 1, message)
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or nested too deeply
        return Finding(1, 1, f"E999 SyntaxError: {error or type(error).__name__}")
    return None


def _semantic_findings(
    text: str, shown: str, builtins: tuple[str, ...] = (), flags: int = 0
) -> Findings:
    """Look for what the parser does not see."""
    tree = compile(text, _NAME, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    try:
        checker = importlib.import_module("pyflakes.checker")
    except ImportError:
        return Findings(shown, _compile(text, flags), _NO_PYFLAKES)
    messages = checker.Checker(tree, filename=_NAME, builtins=builtins).messages
    lines = text.split("\n")
    found = [_finding(message) for message in messages if type(message).__name__ in _CODES]
    kept = sorted(finding for finding in found if not _has_noqa(finding, lines))
    return Findings(shown, kept or _compile(text, flags))


def _finding(message: Any) -> Finding:
    code = _CODES[type(message).__name__]
    text = message.message % message.message_args
    return Finding(message.lineno, message.col + 1, f"{code} {text}")


def _has_noqa(finding: Finding, lines: list[str]) -> bool:
    """Whether a ``noqa`` comment takes the finding away."""
    match = _NOQA.search(lines[finding.line - 1]) if finding.line <= len(lines) else None
    if match is None:
        return False
    codes = re.split(r"[,\s]+", (match["codes"] or "").upper())
    return any(finding.message.startswith(code) for code in codes)


def _compile(text: str, flags: int) -> list[Finding]:
    try:
        compile(text, _NAME, "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        line = error.end_lineno or error.lineno or 1
        column = error.end_offset if error.end_offset and error.end_offset > 0 else error.offset
        return [Finding(line, column or 1, error.msg)]
    except (ValueError, RecursionError, MemoryError) as error:
        return [Finding(1, 1, str(error) or type(error).__name__)]
    return []


def is_auto_lint(settings: Settings | None) -> bool:
    """Whether edits are linted: by setting, or by the variable that clients set later."""
    given = os.environ.get("ENABLE_AUTO_LINT", "").strip().lower()
    return (settings is not None and settings.enable_auto_lint) or given in ("1", "true", "yes")


def lint_report(path: Path, old: str, new: str) -> str:
    """Problems that an edit introduced, in the words of OpenHands' editor.

    A linter that is not installed is named with the package that has it.
    """
    found = _lint(path, new)
    fresh = _introduced(_lint(path, old), found) if found.findings else []
    if fresh:
        lines = [f"- Line {line}, Column {column}: {message}" for line, column, message in fresh]
        report = "\n".join(["Linting issues found in the changes:", *lines]) + "\n"
    elif found.missing and not found.complete:
        return found.missing
    else:
        report = "No linting issues found in the changes."
    return f"{report.rstrip()}\n{found.missing}\n" if found.missing else report


def _lint(path: Path, text: str) -> Findings:
    suffix = path.suffix.lower()
    if is_notebook(path):
        notebook = Notebook.parse(text)
        return _lint_cells(notebook) if notebook is not None else _lint_json(text)
    if suffix in (".py", ".pyi"):
        return _lint_python(text)
    if suffix == ".json":
        return _lint_json(text)
    if suffix in GRAMMARS:
        return _lint_grammar(suffix, text)
    return Findings(text)


def _lint_json(text: str) -> Findings:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        finding = Finding(error.lineno, error.colno, f"Syntax error: {error.msg}")
        return Findings(text, [finding])
    except RecursionError:
        pass
    return Findings(text)


def _introduced(old: Findings, new: Findings) -> list[Finding]:
    """Take away the problems that were there before.

    Outside of the edit they are at the same column; inside, in a line that was moved or changed in
    place.
    """
    hunks = changed_lines(old.text, new.text)
    before, after = old.text.split("\n"), new.text.split("\n")
    known: Counter[tuple[int, int, str]] = Counter()
    changed: list[tuple[int, str, set[object]]] = []
    for finding in old.findings:
        line, shift = finding.line - 1, 0
        for number, (i1, i2, _, j2) in enumerate(hunks):
            if i1 <= line < i2:
                changed.append((number, _kind(finding), _identities(before, line, i1, i2)))
                break
            if i2 <= line:
                shift = j2 - i2
        else:
            known[line + shift, finding.column, _kind(finding)] += 1
    fresh = []
    for finding in sorted(new.findings):
        line, kind = finding.line - 1, _kind(finding)
        key = line, finding.column, kind
        inside = next((n for n, (_, _, j1, j2) in enumerate(hunks) if j1 <= line < j2), None)
        if inside is None and known[key]:
            known[key] -= 1
            continue
        if inside is not None:
            _, _, j1, j2 = hunks[inside]
            places = _identities(after, line, j1, j2)
            same = [each for each in changed if each[:2] == (inside, kind) and each[2] & places]
            if same:
                changed.remove(max(same, key=lambda each: len(each[2] & places)))
                continue
        fresh.append(finding)
    return fresh


def _identities(lines: list[str], line: int, start: int, end: int) -> set[object]:
    """What tells a line of a hunk from the others: its text, and its place from either end."""
    text = lines[line].strip() if line < len(lines) else ""
    return {text, ("from the start", line - start), ("from the end", end - line)}


def _kind(finding: Finding) -> str:
    """The message without the numbers of lines, which an edit above changes."""
    return re.sub(r"\bline \d+", "line", finding.message)
