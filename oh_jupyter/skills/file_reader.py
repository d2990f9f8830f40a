"""Skills for reading documents, images, audio and video, with the output of OpenHands' skills.

Those that call a model read ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` and ``OPENAI_MODEL``.
"""

from __future__ import annotations

import base64
import mimetypes
import os
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import OpenAI


def parse_pdf(file_path: str) -> None:
    """Print the text of a PDF file, page by page.

    Args:
        file_path: The file.
    """

    def read() -> str:
        from pypdf import PdfReader

        pages = enumerate(PdfReader(file_path).pages, 1)
        return "\n\n".join(f"@@ Page {n} @@\n{page.extract_text()}" for n, page in pages).strip()

    _print_text("PDF", file_path, read)


def parse_docx(file_path: str) -> None:
    """Print the text of a Word document, paragraph by paragraph.

    Args:
        file_path: The file.
    """

    def read() -> str:
        from docx import Document

        # Paragraphs are labelled as pages, as in OpenHands.
        paragraphs = enumerate(Document(file_path).paragraphs, 1)
        return "".join(f"@@ Page {n} @@\n{paragraph.text}\n\n" for n, paragraph in paragraphs)

    _print_text("DOCX", file_path, read)


def parse_latex(file_path: str) -> None:
    """Print a LaTeX file as plain text.

    Args:
        file_path: The file.
    """

    def read() -> str:
        from pylatexenc.latex2text import LatexNodes2Text

        text = Path(file_path).read_text(encoding="utf-8")
        return str(LatexNodes2Text().latex_to_text(text).strip())

    _print_text("LaTex", file_path, read)


def parse_pptx(file_path: str) -> None:
    """Print the text of a PowerPoint file, slide by slide.

    Args:
        file_path: The file.
    """

    def read() -> str:
        from pptx import Presentation

        lines = []
        for number, slide in enumerate(Presentation(file_path).slides, 1):
            lines.append(f"@@ Slide {number} @@")
            lines += [shape.text for shape in slide.shapes if hasattr(shape, "text")]
        return "\n".join(lines)

    _print_text("PowerPoint", file_path, read)


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
_MAX_FRAMES = 30  # one request each


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
    cv2: Any = import_module("cv2")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"File {path} not found.")
    video = cv2.VideoCapture(path)
    try:
        if not video.isOpened():
            raise ValueError(f"{path} is not a readable video.")
        total = int(video.get(cv2.CAP_PROP_FRAME_COUNT))
        interval = max(interval, -(-total // _MAX_FRAMES))
        number = 0
        while video.grab():  # does not decode the skipped frames
            if number % interval == 0:
                ok, frame = video.retrieve()
                if ok:
                    yield number, cv2.imencode(".jpg", frame)[1].tobytes()
            number += 1
    finally:
        video.release()


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
