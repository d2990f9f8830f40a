"""Reading and viewing files, directories, images and documents."""

from __future__ import annotations

import os
from pathlib import Path

from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.paths import DOCUMENT_SUFFIXES, check_regular
from oh_jupyter.editor.messages import (
    BINARY,
    MARKDOWN_CLIPPED,
    cannot_read,
    invalid,
    invalid_file,
    too_large,
)
from oh_jupyter.editor.notebook.validation import is_notebook, max_bytes_of
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.editor.text.views import (
    IMAGE_TYPES,
    clip,
    data_url,
    list_directory,
    number_lines,
    view_lines,
)

__all__ = ["read_text", "show_text", "view"]


def read_text(path: Path, max_file_bytes: int) -> tuple[TextFile, atomic_write.Fingerprint]:
    """Text file and its fingerprint; too large, binary and special files are refused."""
    data, fingerprint = _read(path, max_file_bytes)
    file = TextFile.parse(data)
    if file is None:
        raise invalid_file(path, BINARY)
    return file, fingerprint


def _read(path: Path, max_file_bytes: int) -> tuple[bytes, atomic_write.Fingerprint]:
    try:
        size = check_regular(path)
        limit = max_bytes_of(path, max_file_bytes)
        if size > limit:
            raise too_large(path, size, limit)
        return atomic_write.read(path)
    except OSError as error:
        raise cannot_read(path, error) from None


def view(
    path: Path, view_range: list[int] | tuple[int, int] | None, max_file_bytes: int
) -> tuple[EditorResult, bytes | None]:
    """View of a path, and the content that was shown if it can be edited."""
    if os.path.isdir(path):
        return _view_directory(path, view_range), None
    suffix = path.suffix.lower()
    if suffix in IMAGE_TYPES:
        url = data_url(_read(path, max_file_bytes)[0], IMAGE_TYPES[suffix])
        output = f"Image file {path} read successfully. Displaying image content."
        return EditorResult(output, path=str(path), image_urls=[url]), None
    if suffix in DOCUMENT_SUFFIXES:
        from oh_jupyter.editor.documents import to_markdown

        markdown = clip(to_markdown(path, _read(path, max_file_bytes)[0]), MARKDOWN_CLIPPED)
        output = f"Here's the content of the file {path} displayed in Markdown format:\n"
        return EditorResult(f"{output}{markdown}\n", path=str(path)), None
    file, _ = read_text(path, max_file_bytes)
    return EditorResult(show_text(file, path, view_range), path=str(path)), file.data


def show_text(
    file: TextFile, path: Path, view_range: list[int] | tuple[int, int] | None = None
) -> str:
    """Numbered lines of a text, or the cells of a notebook."""
    if is_notebook(path):
        from oh_jupyter.editor.notebook.cells import Notebook
        from oh_jupyter.editor.notebook.view import view_notebook

        notebook = Notebook.parse(file.text)
        if notebook is not None:
            return view_notebook(notebook, path, view_range)
    return view_lines(file, path, view_range) if view_range else number_lines(file.text, path)


def _view_directory(path: Path, view_range: object) -> EditorResult:
    if view_range:
        raise invalid(
            "view_range",
            view_range,
            "The `view_range` parameter is not allowed when `path` points to a directory.",
        )
    try:
        return EditorResult(list_directory(path), path=str(path))
    except OSError as error:
        raise cannot_read(path, error) from None
