"""What an edit broke, as far as that can be told without running anything."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from typing import NamedTuple

from oh_jupyter.editor.differences import changed_lines

__all__ = ["Finding", "lint_report"]


class Finding(NamedTuple):
    """One problem.

    Attributes:
        line: Counted from 1.
        column: Counted from 1.
        message: What is wrong.
    """

    line: int
    column: int
    message: str


def lint_report(path: Path, old: str, new: str) -> str:
    """Report the problems that an edit introduced.

    Python is compiled and, where pyflakes is installed, searched for undefined names;
    JSON and notebooks are parsed.

    Args:
        path: The file; its suffix chooses the linter.
        old: The text before the edit.
        new: The text after the edit.

    Returns:
        The report in the words of OpenHands' editor.
    """
    found = _findings(path, new)
    known = {_moved(finding, old, new) for finding in _findings(path, old)} if found else set()
    fresh = [finding for finding in found if finding not in known]
    if not fresh:
        return "No linting issues found in the changes."
    lines = [f"- Line {line}, Column {column}: {message}" for line, column, message in fresh]
    return "\n".join(["Linting issues found in the changes:", *lines]) + "\n"


def _findings(path: Path, text: str) -> list[Finding]:
    suffix = path.suffix.lower()
    if suffix in (".py", ".pyi"):
        return _lint_python(text)
    if suffix in (".json", ".ipynb"):
        return _lint_json(text)
    return []


def _lint_python(text: str) -> list[Finding]:
    try:
        tree = ast.parse(text)
        compile(tree, "<edit>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return [Finding(error.lineno or 1, error.offset or 1, f"SyntaxError: {error.msg}")]
    except ValueError as error:  # a NUL character
        return [Finding(1, 1, str(error))]
    try:
        checker = importlib.import_module("pyflakes.checker")
        messages = importlib.import_module("pyflakes.messages")
    except ImportError:
        return []
    wanted = (messages.UndefinedName, messages.UndefinedExport, messages.UndefinedLocal)
    return sorted(
        Finding(message.lineno, message.col + 1, message.message % message.message_args)
        for message in checker.Checker(tree, filename="<edit>").messages
        if isinstance(message, wanted)
    )


def _lint_json(text: str) -> list[Finding]:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return [Finding(error.lineno, error.colno, error.msg)]
    return []


def _moved(finding: Finding, old: str, new: str) -> Finding:
    """Say where a finding of the old text would be in the new one."""
    line = finding.line - 1
    shift = 0
    for _, _, i2, _, j2 in changed_lines(old, new):
        if i2 <= line:
            shift = j2 - i2
    return finding._replace(line=finding.line + shift)
