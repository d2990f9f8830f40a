"""Linting: what an edit broke."""

from oh_jupyter.editor.lint.edit_lint import lint_report

__all__ = ["lint_report"]
