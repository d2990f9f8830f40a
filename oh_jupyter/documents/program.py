"""Program of the process that reads one document: kind and arguments, content as its input."""

from __future__ import annotations

import base64
import importlib
import io
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from oh_jupyter.text import plural

MEMORY_BYTES = 4 * 1024**3
"""Address space of the process."""

CONVERTERS = {
    ".docx": "DocxConverter",
    ".pdf": "PdfConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
}
"""Names of MarkItDown's converters by suffix: the one for plain text would show any bytes."""

# The names of exiftool, which the OpenHands editor shows.
AUDIO_FIELDS = {
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

MAX_FRAMES = 30
"""Maximum number of frames of a video; each is a request to a model."""


def markdown(data: bytes, suffix: str) -> str:
    """Convert a document into Markdown."""
    markitdown = importlib.import_module("markitdown")
    converters = importlib.import_module("markitdown.converters")
    converter = getattr(converters, CONVERTERS[suffix])()
    info = markitdown.StreamInfo(extension=suffix)
    text = str(converter.convert(io.BytesIO(data), info).text_content)
    lines = (line.rstrip() for line in re.split("\r?\n", text))
    text = re.sub("\n{3,}", "\n\n", "\n".join(lines))
    if suffix == ".pdf" and not text.strip():
        pdfium = importlib.import_module("pypdfium2")  # it also rejects a damaged PDF
        with pdfium.PdfDocument(data) as document:
            pages = plural(len(document), "page")
        text = f"(The document has {pages} without any text; they may be scanned.)"
    return text


def recording(data: bytes, suffix: str) -> str:
    """Describe the tags and the format of an audio file."""
    tinytag = importlib.import_module("tinytag")
    tags = tinytag.TinyTag.get(f"audio{suffix}", file_obj=io.BytesIO(data))
    lines = [
        f"{name}: {value}"
        for name, field in AUDIO_FIELDS.items()
        if (value := getattr(tags, field, None)) not in (None, "")
    ]
    if tags.duration:
        minutes, seconds = divmod(tags.duration, 60)
        lines.append(f"Duration: {int(minutes)}:{seconds:05.2f}")
    return "\n".join(lines)


def pdf_pages(data: bytes) -> list[str]:
    """Return the text of each page of a PDF."""
    from pypdf import PdfReader

    return [page.extract_text() for page in PdfReader(io.BytesIO(data)).pages]


def docx_paragraphs(data: bytes) -> list[str]:
    """Return the text of each paragraph of a Word document."""
    from docx import Document

    return [paragraph.text for paragraph in Document(io.BytesIO(data)).paragraphs]


def latex_text(data: bytes) -> str:
    """Return the plain text of a LaTeX file."""
    from pylatexenc.latex2text import LatexNodes2Text

    return str(LatexNodes2Text().latex_to_text(data.decode("utf-8")).strip())


def pptx_slides(data: bytes) -> list[list[str]]:
    """Return the texts of each slide of a presentation."""
    from pptx import Presentation

    slides = Presentation(io.BytesIO(data)).slides
    return [[shape.text for shape in slide.shapes if hasattr(shape, "text")] for slide in slides]


def video_frames(data: bytes, path: str, interval: str) -> list[tuple[int, str]]:
    """Return frames of a video as JPEG in base64, with their numbers."""
    cv2: Any = importlib.import_module("cv2")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"File {path} not found.")
    video = cv2.VideoCapture(path)
    try:
        if not video.isOpened():
            raise ValueError(f"{path} is not a readable video.")
        total = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
        distance = max(int(interval), -(-total // MAX_FRAMES))
        frames = []
        number = 0
        while video.grab():  # does not decode the skipped frames
            if number % distance == 0:
                ok, frame = video.retrieve()
                if ok:
                    image = cv2.imencode(".jpg", frame)[1].tobytes()
                    frames.append((number, base64.b64encode(image).decode()))
            number += 1
        return frames
    finally:
        video.release()


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = MEMORY_BYTES if most == resource.RLIM_INFINITY else min(most, MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))


READERS: dict[str, Callable[..., Any]] = {
    reader.__name__: reader
    for reader in (
        *(markdown, recording, pdf_pages, docx_paragraphs, latex_text, pptx_slides),
        video_frames,
    )
}
"""Readers by name."""


def main(kind: str, *arguments: str) -> None:
    """Read the document and write the result, or the reason of a failure, as JSON."""
    # Libraries print, too; only the response belongs into the output.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _limit_memory()
    response: dict[str, Any]
    try:
        response = {"result": READERS[kind](sys.stdin.buffer.read(), *arguments)}
    except BaseException as error:  # native converters raise other errors than Exception
        response = {"error": str(error) or type(error).__name__}
    with output:
        json.dump(response, output)


if __name__ == "__main__":
    main(*sys.argv[1:])
