"""Python linter with the few flake8 codes that mean that a program cannot run.

flake8 itself is a command that takes a third of a second to start; the parser and
pyflakes, which find all of these codes, are used directly.
"""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from typing import Any

from oh_jupyter.editor.lint.finding import Finding, Findings
from oh_jupyter.editor.notebook.cells import Cell, Notebook

__all__ = ["lint_cells", "lint_python"]

_CODES = {"UndefinedName": "F821", "UndefinedExport": "F822", "DuplicateArgument": "F831"}
_NOQA = re.compile(r"# noqa(?::[\s]?(?P<codes>[A-Z]\d+(?:[,\s]+[A-Z]\d+)*))?", re.IGNORECASE)
_NOQA_FILE = re.compile(r"^\s*# flake8[:=]\s*noqa\s*$", re.IGNORECASE | re.MULTILINE)
_NO_PYFLAKES = (
    "Only the syntax was checked: to find undefined names needs the package pyflakes. Install it "
    "with: pip install 'oh_jupyter[lint]'"
)
# PatchPaths that IPython gives to every cell.
_IPYTHON_NAMES = ("In", "Out", "_", "__", "___", "display", "exit", "get_ipython", "quit")
_MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w.]+\?{1,2}\s*)$")
_ASSIGNED_MAGIC = re.compile(r"^(\s*[\w, .\[\]]+=\s*)[%!].*$")
# Cell magics whose body is still Python.
_PYTHON_MAGIC = re.compile(r"^%%(?:time|timeit|capture|prun|python3?|debug)\b")
_NAME = "<lint>"
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def lint_python(text: str) -> Findings:
    """Findings in a module."""
    if _NOQA_FILE.search(text):
        return Findings(text)
    error = _syntax_error(text)
    if error is not None:
        return Findings(text, [error])
    return _semantic_findings(text, text)


def lint_cells(notebook: Notebook) -> Findings:
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
