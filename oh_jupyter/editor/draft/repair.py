"""Validation of a merged draft before it is written, and repair rounds with the model."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from oh_jupyter.editor.draft.model import DraftModel
from oh_jupyter.editor.draft.prompts import repair_prompt
from oh_jupyter.editor.lint.edit_lint import lint_report
from oh_jupyter.editor.text.unified_diff import unified_diff
from oh_jupyter.errors import DraftError

__all__ = ["check_syntax", "repaired"]

_FINDINGS_HEADING = "Linting issues found"
_MAX_FINDINGS = 5  # findings, as in OpenHands


def check_syntax(path: Path, old: str, new: str) -> str:
    """Doubt about a merge that breaks a file; "" if it does not, or was broken before.

    In Python only the syntax counts: a name may well be defined by the next edit. For
    other languages the linter looks at nothing else.
    """
    if path.suffix.lower() in (".py", ".pyi"):
        problem = "" if _syntax_problem(old) else _syntax_problem(new)
    else:
        findings = _report(path, old, new).splitlines()[1:2]
        problem = findings[0].removeprefix("- ") if findings else ""
    return f"With its markers filled in, it would break the file: {problem}." if problem else ""


def _syntax_problem(text: str) -> str:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return f"SyntaxError in line {error.lineno or 1}: {error.msg}"
    except ValueError as error:
        return str(error)
    return ""


def repaired(
    model: DraftModel,
    path: Path,
    old: str,
    code: list[str],
    *,
    draft: str,
    first: int,
    splice: Callable[[list[str]], str],
) -> list[str]:
    """Have the model correct what its merge broke, until nothing is or it had enough rounds.

    Nothing is written meanwhile, so what the report says of the file is true of it.
    """
    report = _report(path, old, splice(code))
    for _ in range(model.rounds):
        if not report:
            return code
        text = "\n".join(code)
        code = model.ask(repair_prompt(text, draft, report, first), text).split("\n")
        report = _report(path, old, splice(code))
    if not report:
        return code
    findings = [line for line in report.splitlines() if line.startswith("- ")]
    raise DraftError(
        f"[Linting failed for edited file {path}. {len(findings)} lint errors found.]\n"
        "[begin attempted changes]\n"
        f"{unified_diff(old, splice(code), str(path))}\n"
        "[end attempted changes]\n"
        f"First {_MAX_FINDINGS} lint errors:\n"
        + "\n".join(findings[:_MAX_FINDINGS])
        + f"\nYour changes are NOT applied; {path} is as it was."
    )


def _report(path: Path, old: str, new: str) -> str:
    report = lint_report(path, old, new)
    return report if report.startswith(_FINDINGS_HEADING) else ""
