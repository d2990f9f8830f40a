"""Showing office documents, PDFs and audio as Markdown."""

from __future__ import annotations

import importlib
import io
import re
from pathlib import Path
from typing import Any

from oh_jupyter.editor.audio import AUDIO_SUFFIXES, describe_audio
from oh_jupyter.editor.messages import invalid_file, plural
from oh_jupyter.errors import EditorError

__all__ = ["to_markdown"]

_CONVERTERS = {
    ".docx": "DocxConverter",
    ".pdf": "PdfConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
}


def to_markdown(path: Path, data: bytes) -> str:
    """Convert a document with Microsoft's MarkItDown, or describe a recording.

    Args:
        path: The file, for its suffix and for errors.
        data: Its content.

    Returns:
        The text.

    Raises:
        FileValidationError: The converter is not installed.
        EditorError: The document is broken, or of a kind that it cannot convert.
    """
    suffix = path.suffix.lower()
    if suffix in AUDIO_SUFFIXES:
        return describe_audio(path, data)
    try:
        markitdown = importlib.import_module("markitdown")
    except ImportError:
        raise invalid_file(
            path,
            f"Showing {path.suffix} files needs the package markitdown. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        ) from None
    try:
        text = _convert(markitdown, data, suffix)
        if suffix == ".pdf" and not text.strip():
            text = _without_text(data)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # the converters' native parts raise what is no Exception
        reason = str(error) or type(error).__name__
        raise EditorError(
            f"Error in converting file to Markdown: {reason}. Please use Python code to read {path}"
        ) from None
    return text


def _convert(markitdown: Any, data: bytes, suffix: str) -> str:
    # The one converter of this kind of file: among all of them, the one for plain text would
    # show a broken document as its bytes.
    converters = importlib.import_module("markitdown.converters")
    converter = getattr(converters, _CONVERTERS[suffix])()
    info = markitdown.StreamInfo(extension=suffix)
    text = str(converter.convert(io.BytesIO(data), info).text_content)
    lines = (line.rstrip() for line in re.split("\r?\n", text))
    return re.sub("\n{3,}", "\n\n", "\n".join(lines))


def _without_text(data: bytes) -> str:
    """Say why a PDF has no text: it is scanned, or it is none; the converter is silent."""
    pdfium = importlib.import_module("pypdfium2")
    document = pdfium.PdfDocument(data)
    try:
        pages = plural(len(document), "page")
    finally:
        document.close()
    return f"(The document has {pages} without any text; they may be scanned.)"
