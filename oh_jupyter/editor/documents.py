"""Documents and recordings shown as Markdown."""

from __future__ import annotations

import importlib
import io
import re
from pathlib import Path
from typing import Any

from oh_jupyter.editor.messages import invalid_file, plural
from oh_jupyter.errors import EditorError

__all__ = ["to_markdown"]

_CONVERTERS = {
    ".docx": "DocxConverter",
    ".pdf": "PdfConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
}

_AUDIO_SUFFIXES = frozenset((".mp3", ".wav", ".m4a", ".flac"))

# The names are those that exiftool uses, which agents know from the OpenHands editor.
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
    "Transcription is not made by the editor, which would send the recording to a service. "
    "Use the skill `parse_audio` with a configured model."
)


def to_markdown(path: Path, data: bytes) -> str:
    """Markdown of a document by Microsoft's MarkItDown, or of a recording by its tags."""
    suffix = path.suffix.lower()
    if suffix in _AUDIO_SUFFIXES:
        return _describe_audio(path, data)
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


def _describe_audio(path: Path, data: bytes) -> str:
    """Tags and format of a recording, as Markdown.

    The OpenHands editor sends recordings to a web service to have them transcribed; this
    one never does.
    """
    try:
        tinytag = importlib.import_module("tinytag")
    except ImportError:
        raise invalid_file(
            path,
            f"Showing {path.suffix} files needs the package tinytag. "
            "Install it with: pip install 'oh_jupyter[documents]'",
        ) from None
    try:
        tags = tinytag.TinyTag.get(f"audio{path.suffix.lower()}", file_obj=io.BytesIO(data))
    except Exception as error:
        raise EditorError(
            f"Error in converting file to Markdown: {error or type(error).__name__}. "
            f"Please use Python code to read {path}"
        ) from None
    lines = [
        f"{name}: {value}"
        for name, field in _AUDIO_FIELDS.items()
        if (value := getattr(tags, field, None)) not in (None, "")
    ]
    if tags.duration:
        minutes, seconds = divmod(tags.duration, 60)
        lines.append(f"Duration: {int(minutes)}:{seconds:05.2f}")
    return "\n".join([*lines, "", "### Audio Transcript:", _NO_TRANSCRIPT])
