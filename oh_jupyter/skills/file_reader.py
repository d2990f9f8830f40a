"""Skills to read documents as text. Each needs one package, imported at first use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

__all__ = ["parse_docx", "parse_latex", "parse_pdf", "parse_pptx"]


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

        # Paragraphs are announced as pages: agents and tests know this output.
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
    """Print what is in a document, or why it cannot be read, in the words of OpenHands' skills."""
    print(f"[Reading {kind} file from {file_path}]")
    try:
        print(read())
    except Exception as error:
        print(f"Error reading {kind} file: {error}")
