"""Text files: exact bytes, edits, differences, views."""

from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.editor.text.unified_diff import changed_lines, unified_diff

__all__ = ["TextFile", "changed_lines", "unified_diff"]
