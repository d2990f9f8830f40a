"""Lint report of the problems that an edit introduced.

Python is checked by its parser and pyflakes, which find the fatal errors of flake8 but start
faster; other languages by tree-sitter grammars in separate packages, since packs take 190 MB.
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
    """One reported problem."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class Findings:
    """The problems of a text."""

    text: str
    findings: list[Finding] = field(default_factory=list)
    missing: str = ""  # names a missing package, and how to install it
    complete: bool = True


class _Grammar(NamedTuple):
    package: str
    function: str = "language"
    extra: bool = True  # whether the extra `lint` installs it


_SUFFIXES = {
    _Grammar("bash"): ".bash .sh",
    _Grammar("c"): ".c .h",
    _Grammar("c-sharp"): ".cs",
    _Grammar("cpp"): ".cc .cpp .cxx .hpp",
    _Grammar("css"): ".css",
    _Grammar("elixir", extra=False): ".ex .exs",
    _Grammar("go"): ".go",
    _Grammar("haskell", extra=False): ".hs",
    _Grammar("hcl", extra=False): ".tf",
    _Grammar("html"): ".htm .html",
    _Grammar("java"): ".java",
    _Grammar("javascript"): ".cjs .js .jsx .mjs",
    _Grammar("julia", extra=False): ".jl",
    _Grammar("kotlin", extra=False): ".kt .kts",
    _Grammar("lua", extra=False): ".lua",
    _Grammar("ocaml", "language_ocaml", extra=False): ".ml",
    _Grammar("php", "language_php"): ".php",
    _Grammar("ruby"): ".rb",
    _Grammar("rust"): ".rs",
    _Grammar("scala", extra=False): ".scala",
    _Grammar("swift", extra=False): ".swift",
    _Grammar("toml"): ".toml",
    _Grammar("typescript", "language_typescript"): ".ts",
    _Grammar("typescript", "language_tsx"): ".tsx",
    _Grammar("yaml"): ".yaml .yml",
    _Grammar("zig", extra=False): ".zig",
}
GRAMMARS = {
    suffix: grammar for grammar, suffixes in _SUFFIXES.items() for suffix in suffixes.split()
}
"""The grammars by suffix."""


def _lint_grammar(suffix: str, text: str) -> Findings:
    """Return the syntax errors by the tree-sitter grammar of a suffix, or the missing package."""
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
    findings, nodes = set(), [root]
    while nodes:
        node = nodes.pop()
        if not (node.has_error or node.is_missing):
            continue
        if node.is_missing or node.type == "ERROR":
            row, column = node.start_point
            before = lines[row][:column].decode("utf-8", "replace") if row < len(lines) else ""
            message = "Missing node" if node.is_missing else "Syntax error"
            findings.add(Finding(row + 1, len(before) + 1, message))
        nodes += node.children
    return sorted(findings)


_CODES = {"UndefinedName": "F821", "UndefinedExport": "F822", "DuplicateArgument": "F831"}
_NOQA = re.compile(r"# noqa(?::[\s]?(?P<codes>[A-Z]\d+(?:[,\s]+[A-Z]\d+)*))?", re.IGNORECASE)
_NOQA_FILE = re.compile(r"^\s*# flake8[:=]\s*noqa\s*$", re.IGNORECASE | re.MULTILINE)
_NO_PYFLAKES = (
    "Only the syntax was checked: finding undefined names needs the package pyflakes. Install it "
    "with: pip install 'oh_jupyter[lint]'"
)
# Names that IPython defines in every cell.
_IPYTHON_NAMES = ("In", "Out", "_", "__", "___", "display", "exit", "get_ipython", "quit")
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?{1,2}\s*)$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w, .\[\]]+=\s*)[%!].*$")
# Cell magics with a Python body.
_PYTHON_MAGIC = re.compile(r"^%%(?:time|timeit|capture|prun|python3?|debug)\b")
_NAME = "<lint>"
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def _lint_python(text: str) -> Findings:
    """Check a module."""
    if _NOQA_FILE.search(text):
        return Findings(text)
    error = _syntax_error(text)
    if error is not None:
        return Findings(text, [error])
    return _semantic_findings(text, text)


def _lint_cells(notebook: Notebook) -> Findings:
    """Check the code cells of a notebook, which share their names."""
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
    """Convert a cell to Python with the same number of lines."""
    lines = cell.source.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if cell.type != "code" or (first.startswith("%%") and not _PYTHON_MAGIC.match(first)):
        return "\n".join("#" for _ in lines)
    return "\n".join(_ASSIGNED_MAGIC.sub(r"\1None", _MAGIC.sub(r"\1pass", line)) for line in lines)


def _syntax_error(text: str, flags: int = 0) -> Finding | None:
    # Keep the compiler's warnings, such as about unknown escapes, out of the kernel's log.
    warnings.filterwarnings("ignore", module=_NAME)
    try:
        compile(text, _NAME, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    except SyntaxError as error:
        message = f"E999 {type(error).__name__}: {error.msg}"
        # flake8 adds 1 to the parser's column, although it already counts from 1.
        return Finding(error.lineno or 1, (error.offset or 0) + 1, message)
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or nested too deeply
        return Finding(1, 1, f"E999 SyntaxError: {error or type(error).__name__}")
    return None


def _semantic_findings(
    text: str, shown: str, builtins: tuple[str, ...] = (), flags: int = 0
) -> Findings:
    """Check the names in code with valid syntax."""
    tree = compile(text, _NAME, "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    try:
        checker = importlib.import_module("pyflakes.checker")
    except ImportError:
        return Findings(shown, _compile(text, flags), _NO_PYFLAKES)
    messages = checker.Checker(tree, filename=_NAME, builtins=builtins).messages
    lines = text.split("\n")
    findings = []
    for message in messages:
        code = _CODES.get(type(message).__name__)
        description = f"{code} {message.message % message.message_args}"
        finding = Finding(message.lineno, message.col + 1, description)
        if code is not None and not _has_noqa(finding, lines):
            findings.append(finding)
    return Findings(shown, sorted(findings) or _compile(text, flags))


def _has_noqa(finding: Finding, lines: list[str]) -> bool:
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
    """Return whether edits are linted, by the setting or by a variable that clients set later."""
    value = os.environ.get("ENABLE_AUTO_LINT", "").strip().lower()
    return (settings is not None and settings.enable_auto_lint) or value in ("1", "true", "yes")


NO_FINDINGS = "No linting issues found in the changes."
"""Report in OpenHands' words."""


def lint_report(path: Path, old: str, new: str) -> str:
    """Report the problems that an edit introduced, in OpenHands' words, and a missing linter."""
    result = _lint(path, new)
    if result.missing and not result.complete:
        return result.missing
    report = NO_FINDINGS
    introduced = _introduced(_lint(path, old), result) if result.findings else []
    if introduced:
        report = "Linting issues found in the changes:\n" + "".join(
            f"- Line {line}, Column {column}: {text}\n" for line, column, text in introduced
        )
    return f"{report.rstrip()}\n{result.missing}\n" if result.missing else report


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
    """Return the findings that are not among the old ones.

    Outside of changed lines an old finding has the same column; inside, it is in a line with the
    same text or position.
    """
    changes = changed_lines(old.text, new.text)
    before, after = old.text.split("\n"), new.text.split("\n")
    known: Counter[tuple[int, int, str]] = Counter()
    changed: list[tuple[int, str, set[object]]] = []
    for finding in old.findings:
        line, shift = finding.line - 1, 0
        for number, (i1, i2, _, j2) in enumerate(changes):
            if i1 <= line < i2:
                changed.append((number, _kind(finding), _identities(before, line, i1, i2)))
                break
            if i2 <= line:
                shift = j2 - i2
        else:
            known[line + shift, finding.column, _kind(finding)] += 1
    introduced = []
    for finding in sorted(new.findings):
        line, kind = finding.line - 1, _kind(finding)
        key = line, finding.column, kind
        inside = next((n for n, (_, _, j1, j2) in enumerate(changes) if j1 <= line < j2), None)
        if inside is None and known[key]:
            known[key] -= 1
            continue
        if inside is not None:
            _, _, j1, j2 = changes[inside]
            identities = _identities(after, line, j1, j2)
            same = [
                entry for entry in changed if entry[:2] == (inside, kind) and entry[2] & identities
            ]
            if same:
                changed.remove(max(same, key=lambda entry: len(entry[2] & identities)))
                continue
        introduced.append(finding)
    return introduced


def _identities(lines: list[str], line: int, start: int, end: int) -> set[object]:
    """Return the properties that identify a changed line: text, and position from either end."""
    text = lines[line].strip() if line < len(lines) else ""
    return {text, ("from the start", line - start), ("from the end", end - line)}


def _kind(finding: Finding) -> str:
    """Return the message without line numbers, which an edit above changes."""
    return re.sub(r"\bline \d+", "line", finding.message)
