"""Skills for reading documents, images, audio and video, with the output of OpenHands' skills.

Those that call a model read ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and ``OPENAI_MODEL``.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oh_jupyter.documents.process import read_document

if TYPE_CHECKING:
    from openai import OpenAI


def parse_pdf(file_path: str) -> None:
    """Print the text of a PDF file, page by page.

    Args:
        file_path: The file.
    """

    def read() -> str:
        pages = enumerate(_read("pdf_pages", file_path), 1)
        return "\n\n".join(f"@@ Page {n} @@\n{text}" for n, text in pages).strip()

    _print_text("PDF", file_path, read)


def parse_docx(file_path: str) -> None:
    """Print the text of a Word document, paragraph by paragraph.

    Args:
        file_path: The file.
    """

    def read() -> str:
        # Paragraphs are labelled as pages, as in OpenHands.
        paragraphs = enumerate(_read("docx_paragraphs", file_path), 1)
        return "".join(f"@@ Page {n} @@\n{text}\n\n" for n, text in paragraphs)

    _print_text("DOCX", file_path, read)


def parse_latex(file_path: str) -> None:
    """Print a LaTeX file as plain text.

    Args:
        file_path: The file.
    """
    _print_text("LaTex", file_path, lambda: str(_read("latex_text", file_path)))


def parse_pptx(file_path: str) -> None:
    """Print the text of a PowerPoint file, slide by slide.

    Args:
        file_path: The file.
    """

    def read() -> str:
        slides = enumerate(_read("pptx_slides", file_path), 1)
        return "\n".join("\n".join([f"@@ Slide {n} @@", *texts]) for n, texts in slides)

    _print_text("PowerPoint", file_path, read)


def _read(kind: str, file_path: str) -> Any:
    return read_document(kind, Path(file_path).read_bytes())


def _print_text(kind: str, file_path: str, read: Callable[[], str]) -> None:
    """Print the text of a document, or the error, in the format of OpenHands' skills."""
    print(f"[Reading {kind} file from {file_path}]")
    try:
        print(read())
    except Exception as error:
        print(f"Error reading {kind} file: {error}")


_DESCRIBE = "Describe this image as detail as possible."
_MODEL = "gpt-4o"
_MAX_TOKENS = 500


def parse_audio(file_path: str, model: str = "whisper-1") -> None:
    """Print an English transcript of an audio file.

    Args:
        file_path: The file.
        model: The model that translates it.
    """
    print(f"[Transcribing audio file from {file_path}]")
    try:
        with open(file_path, "rb") as file, warnings.catch_warnings():
            # The client marks the whole method, although only some results are deprecated.
            warnings.simplefilter("ignore", DeprecationWarning)
            translation = _client().audio.translations.create(model=model, file=file)
        print(translation.text)
    except Exception as error:
        print(f"Error transcribing audio file: {error}")


def parse_image(file_path: str, task: str = _DESCRIBE) -> None:
    """Print a model's description of an image.

    Args:
        file_path: The file.
        task: The question about it.
    """
    print(f"[Reading image file from {file_path}]")
    try:
        media_type = mimetypes.guess_type(file_path)[0] or "image/jpeg"
        print(_ask(task, Path(file_path).read_bytes(), media_type))
    except Exception as error:
        print(f"Error with the request: {error}")


def parse_video(file_path: str, task: str = _DESCRIBE, frame_interval: int = 30) -> None:
    """Print a model's descriptions of frames of a video, at most thirty.

    Args:
        file_path: The file.
        task: The question about each frame.
        frame_interval: Distance between described frames; it grows for long videos.
    """
    print(f"[Processing video file from {file_path} with frame interval {frame_interval}]")
    task = task or "This is one frame from a video, please summarize this frame."
    try:
        frames = list(_frames(file_path, max(1, frame_interval)))
    except Exception as error:
        print(f"Error reading video file: {error}")
        return
    print(f"Totally {len(frames)} would be analyze...\n")
    for index, (number, image) in enumerate(frames, 1):
        print(f"Process the {file_path}, current No. {number} frame...")
        try:
            print(f"Frame {index}'s content: {_ask(task, image, 'image/jpeg')}\n")
        except Exception as error:
            print(f"Error with the request: {error}")


def _frames(path: str, interval: int) -> Iterator[tuple[int, bytes]]:
    """Yield frames of a video as JPEG, with their numbers."""
    for number, image in read_document("video_frames", b"", os.path.abspath(path), str(interval)):
        yield number, base64.b64decode(image)


def _ask(task: str, image: bytes, media_type: str) -> str:
    url = f"data:{media_type};base64,{base64.b64encode(image).decode()}"
    completion = _client().chat.completions.create(
        model=os.environ.get("OPENAI_MODEL") or _MODEL,
        max_tokens=int(os.environ.get("MAX_TOKEN") or _MAX_TOKENS),
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": task},
                    {"type": "image_url", "image_url": {"url": url}},
                ],
            }
        ],
    )
    return completion.choices[0].message.content or ""


def _client() -> OpenAI:
    from openai import OpenAI

    if not os.environ.get("OPENAI_API_KEY"):
        raise ValueError(
            "OPENAI_API_KEY is not set. Set it, and OPENAI_BASE_URL and OPENAI_MODEL for another "
            "endpoint or model."
        )
    return OpenAI()  # reads key and endpoint from the environment
