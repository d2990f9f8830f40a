"""Showing office documents, PDFs and audio as Markdown."""

from __future__ import annotations

import importlib
import io
from pathlib import Path

from oh_jupyter.editor.messages import invalid_file
from oh_jupyter.errors import EditorError

__all__ = ["to_markdown"]


def to_markdown(path: Path, data: bytes) -> str:
    """Convert a document with Microsoft's MarkItDown.

    Args:
        path: The file, for its suffix and for errors.
        data: Its content.

    Returns:
        The text.

    Raises:
        FileValidationError: The converter is not installed.
        EditorError: The document is broken, or of a kind that it cannot convert.
    """
    try:
        markitdown = importlib.import_module("markitdown")
    except ImportError:
        raise invalid_file(
            path,
            f"Showing {path.suffix} files needs the package markitdown. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        ) from None
    try:
        result = markitdown.MarkItDown().convert_stream(
            io.BytesIO(data), file_extension=path.suffix.lower()
        )
    except Exception as error:
        raise EditorError(
            f"Error in converting file to Markdown: {error}. Please use Python code to read {path}"
        ) from None
    return str(result.text_content)
