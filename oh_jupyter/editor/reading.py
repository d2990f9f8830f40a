"""Views of text files, notebooks, directories, images, documents and audio files."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from oh_jupyter.documents.process import read_document
from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.path_guard import open_guarded
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
    MAX_VIEW_CHARS,
    LineSeeker,
    check_range,
    data_url,
    decode_lines,
    detect_by_head,
    has_wide_newlines,
    list_directory,
    number_lines,
    two_integers,
    view_lines,
)
from oh_jupyter.errors import DocumentError, EditorError
from oh_jupyter.text import shorten

_AUDIO_SUFFIXES = frozenset((".mp3", ".wav", ".m4a", ".flac"))

_NO_TRANSCRIPT = (
    "The editor does not transcribe, since that would send the recording to a service. Use the "
    "skill `parse_audio` with a configured model."
)


_MAX_SHOWN_BYTES = 100_000  # in any encoding more characters than a view shows


def _to_markdown(path: Path, data: bytes) -> str:
    """Convert a document by Microsoft's MarkItDown, or describe an audio file by its tags."""
    suffix = path.suffix.lower()
    is_recording = suffix in _AUDIO_SUFFIXES
    package = "tinytag" if is_recording else "markitdown"
    if find_spec(package) is None:
        raise invalid_file(
            path,
            f"Viewing {path.suffix} files needs the package {package}. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        )
    try:
        text = str(read_document("recording" if is_recording else "markdown", data, suffix))
    except DocumentError as error:
        raise EditorError(
            f"Error in converting file to Markdown: {error}. Please use Python code to read {path}"
        ) from None
    return f"{text}\n\n### Audio Transcript:\n{_NO_TRANSCRIPT}" if is_recording else text


def read_text(path: Path, max_file_bytes: int) -> tuple[TextFile, atomic_write.Fingerprint]:
    """Read a text file and its fingerprint; reject large, binary and special files."""
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
    """Return the view of a path, and the content shown if it can be edited."""
    if os.path.isdir(path):
        return _view_directory(path, view_range), None
    suffix = path.suffix.lower()
    if suffix in IMAGE_TYPES:
        url = data_url(_read(path, max_file_bytes)[0], IMAGE_TYPES[suffix])
        output = f"Image file {path} read successfully. Displaying image content."
        return EditorResult(output, path=str(path), image_urls=[url]), None
    if suffix in DOCUMENT_SUFFIXES:
        markdown = shorten(
            _to_markdown(path, _read(path, max_file_bytes)[0]),
            MAX_VIEW_CHARS,
            marker=MARKDOWN_CLIPPED,
        )
        output = f"Here's the content of the file {path} displayed in Markdown format:\n"
        return EditorResult(f"{output}{markdown}\n", path=str(path)), None
    if view_range and not is_notebook(path) and os.path.getsize(path) > max_file_bytes:
        return EditorResult(_view_large(path, view_range, max_file_bytes), path=str(path)), None
    file, _ = read_text(path, max_file_bytes)
    return EditorResult(show_text(file, path, view_range), path=str(path)), file.data


def _view_large(path: Path, view_range: list[int] | tuple[int, int], max_file_bytes: int) -> str:
    """Show numbered lines of a file over the limit, without reading all of it."""
    size = check_regular(path)
    try:
        with open(open_guarded(path, os.O_RDONLY), "rb") as stream:
            encoding = detect_by_head(stream)
            if encoding is None:
                raise invalid_file(path, BINARY)
            if has_wide_newlines(encoding):
                raise too_large(path, size, max_file_bytes)
            seeker = LineSeeker(stream)
            known = max(two_integers(view_range))
            if min(view_range) < 1 or seeker.offset_of(known) is None:
                known = seeker.count()
            first, last, note = check_range(view_range, known)
            data = seeker.head(first, last, _MAX_SHOWN_BYTES)
    except OSError as error:
        raise cannot_read(path, error) from None
    text = decode_lines(data, encoding)
    if text is None:
        raise invalid_file(path, BINARY)
    return note + number_lines(text.removesuffix("\n"), path, first)


def show_text(
    file: TextFile, path: Path, view_range: list[int] | tuple[int, int] | None = None
) -> str:
    """Show the numbered lines of a text, or the cells of a notebook."""
    if is_notebook(path):
        from oh_jupyter.editor.notebook.cells import Notebook, view_notebook

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
