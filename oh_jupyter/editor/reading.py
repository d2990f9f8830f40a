"""Views of text files, notebooks, directories, images, documents and audio files."""

from __future__ import annotations

import importlib
import io
import os
import re
from pathlib import Path
from typing import Any

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
from oh_jupyter.editor.text.large_file import (
    LineSeeker,
    decode_lines,
    detect_by_head,
    has_wide_newlines,
)
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.editor.text.views import (
    IMAGE_TYPES,
    check_range,
    clip,
    data_url,
    list_directory,
    number_lines,
    two_integers,
    view_lines,
)
from oh_jupyter.errors import EditorError
from oh_jupyter.plural import plural

_CONVERTERS = {
    ".docx": "DocxConverter",
    ".pdf": "PdfConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
}

_AUDIO_SUFFIXES = frozenset((".mp3", ".wav", ".m4a", ".flac"))

# The names of exiftool, which the OpenHands editor shows.
_AUDIO_FIELDS = {
    "Title": "title",
    "Artist": "artist",
    "Band": "albumartist",
    "Album": "album",
    "Genre": "genre",
    "Track": "track",
    "Composer": "composer",
    "Comment": "comment",
    "DateTimeOriginal": "year",
    "NumChannels": "channels",
    "SampleRate": "samplerate",
    "BitsPerSample": "bitdepth",
}
_NO_TRANSCRIPT = (
    "The editor does not transcribe, since that would send the recording to a service. Use the "
    "skill `parse_audio` with a configured model."
)


_MAX_SHOWN_BYTES = 100_000  # in any encoding more characters than a view shows


def _to_markdown(path: Path, data: bytes) -> str:
    """Convert a document by Microsoft's MarkItDown, or describe an audio file by its tags."""
    suffix = path.suffix.lower()
    if suffix in _AUDIO_SUFFIXES:
        return _describe_audio(path, data)
    markitdown = _package("markitdown", path)
    try:
        text = _convert(markitdown, data, suffix)
        if suffix == ".pdf" and not text.strip():
            pdfium = importlib.import_module("pypdfium2")  # it also rejects a damaged PDF
            with pdfium.PdfDocument(data) as document:
                pages = plural(len(document), "page")
            text = f"(The document has {pages} without any text; they may be scanned.)"
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # native converters raise other errors than Exception
        raise _not_converted(path, error) from None
    return text


def _package(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise invalid_file(
            path,
            f"Viewing {path.suffix} files needs the package {name}. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        ) from None


def _not_converted(path: Path, error: BaseException) -> EditorError:
    reason = str(error) or type(error).__name__
    return EditorError(
        f"Error in converting file to Markdown: {reason}. Please use Python code to read {path}"
    )


def _convert(markitdown: Any, data: bytes, suffix: str) -> str:
    # Use only the converter for this suffix: the one for plain text would show the bytes of a
    # broken document.
    converters = importlib.import_module("markitdown.converters")
    converter = getattr(converters, _CONVERTERS[suffix])()
    info = markitdown.StreamInfo(extension=suffix)
    text = str(converter.convert(io.BytesIO(data), info).text_content)
    lines = (line.rstrip() for line in re.split("\r?\n", text))
    return re.sub("\n{3,}", "\n\n", "\n".join(lines))


def _describe_audio(path: Path, data: bytes) -> str:
    """Describe the tags and the format of an audio file in Markdown."""
    tinytag = _package("tinytag", path)
    try:
        tags = tinytag.TinyTag.get(f"audio{path.suffix.lower()}", file_obj=io.BytesIO(data))
    except Exception as error:
        raise _not_converted(path, error) from None
    lines = [
        f"{name}: {value}"
        for name, field in _AUDIO_FIELDS.items()
        if (value := getattr(tags, field, None)) not in (None, "")
    ]
    if tags.duration:
        minutes, seconds = divmod(tags.duration, 60)
        lines.append(f"Duration: {int(minutes)}:{seconds:05.2f}")
    return "\n".join([*lines, "", "### Audio Transcript:", _NO_TRANSCRIPT])


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
        markdown = clip(_to_markdown(path, _read(path, max_file_bytes)[0]), MARKDOWN_CLIPPED)
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
        with open(path, "rb") as stream:
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
