"""Text files: exact bytes, edits, differences, views."""

from oh_jupyter.editor.text.line_diff import changed_lines, unified_diff
from oh_jupyter.editor.text.text_file import TextFile

__all__ = ["TextFile", "changed_lines", "unified_diff"]
