"""Lint report of an edit: the problems that it introduced."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from oh_jupyter.editor.lint.finding import Finding, Findings
from oh_jupyter.editor.lint.grammars import GRAMMARS, lint_grammar
from oh_jupyter.editor.lint.python import lint_cells, lint_python
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.text.unified_diff import changed_lines

__all__ = ["lint_report"]


def lint_report(path: Path, old: str, new: str) -> str:
    """Problems that an edit introduced, in the words of OpenHands' editor.

    Python, also in the cells of a notebook, is searched for what flake8 calls E999,
    F821, F822 and F831, and if there is nothing it is compiled. JSON is parsed; other
    languages are parsed with their tree-sitter grammar. A linter that is not installed is
    named with the package that has it.
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
        from oh_jupyter.editor.notebook.cells import Notebook

        notebook = Notebook.parse(text)
        return lint_cells(notebook) if notebook is not None else _lint_json(text)
    if suffix in (".py", ".pyi"):
        return lint_python(text)
    if suffix == ".json":
        return _lint_json(text)
    if suffix in GRAMMARS:
        return lint_grammar(suffix, text)
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

    In lines that the edit left alone the same problem is expected at the same column of
    the line where it is now; in changed lines a problem of the same kind counts as old.
    """
    hunks = changed_lines(old.text, new.text)
    known: Counter[tuple[str, int, int, str]] = Counter()
    for finding in old.findings:
        line, shift = finding.line - 1, 0
        for number, (i1, i2, _, j2) in enumerate(hunks):
            if i1 <= line < i2:
                known["hunk", number, 0, _kind(finding)] += 1
                break
            if i2 <= line:
                shift = j2 - i2
        else:
            known["line", line + shift, finding.column, _kind(finding)] += 1
    fresh = []
    for finding in sorted(new.findings):
        line = finding.line - 1
        inside = [number for number, (_, _, j1, j2) in enumerate(hunks) if j1 <= line < j2]
        key = ("line", line, finding.column, _kind(finding))
        if inside:
            key = ("hunk", inside[0], 0, _kind(finding))
        if known[key]:
            known[key] -= 1
        else:
            fresh.append(finding)
    return fresh


def _kind(finding: Finding) -> str:
    """The message without the numbers of lines, which an edit above changes."""
    return re.sub(r"\bline \d+", "line", finding.message)
