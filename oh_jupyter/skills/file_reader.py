"""Skills to read documents as text. Each needs one package, imported at first use."""

from __future__ import annotations

from pathlib import Path

__all__ = ["parse_docx", "parse_latex", "parse_pdf", "parse_pptx"]


def parse_pdf(file_path: str) -> None:
    """Print the text of a PDF file, page by page.

    Args:
        file_path: The file.
    """
    from pypdf import PdfReader

    print(f"[Reading PDF file from {file_path}]")
    pages = PdfReader(file_path).pages
    texts = [f"@@ Page {number} @@\n{page.extract_text()}" for number, page in enumerate(pages, 1)]
    print("\n\n".join(texts).strip())


def parse_docx(file_path: str) -> None:
    """Print the text of a Word document, paragraph by paragraph.

    Args:
        file_path: The file.
    """
    from docx import Document

    print(f"[Reading DOCX file from {file_path}]")
    paragraphs = Document(file_path).paragraphs
    # Paragraphs are announced as pages: agents and tests know this output.
    print(
        "".join(
            f"@@ Page {number} @@\n{paragraph.text}\n\n"
            for number, paragraph in enumerate(paragraphs, 1)
        )
    )


def parse_latex(file_path: str) -> None:
    """Print a LaTeX file as plain text.

    Args:
        file_path: The file.
    """
    from pylatexenc.latex2text import LatexNodes2Text

    print(f"[Reading LaTex file from {file_path}]")
    text = Path(file_path).read_text(encoding="utf-8")
    print(LatexNodes2Text().latex_to_text(text).strip())


def parse_pptx(file_path: str) -> None:
    """Print the text of a PowerPoint file, slide by slide.

    Args:
        file_path: The file.
    """
    from pptx import Presentation

    print(f"[Reading PowerPoint file from {file_path}]")
    try:
        slides = Presentation(file_path).slides
        lines = []
        for number, slide in enumerate(slides, 1):
            lines.append(f"@@ Slide {number} @@")
            lines += [shape.text for shape in slide.shapes if hasattr(shape, "text")]
        print("\n".join(lines))
    except Exception as error:
        print(f"Error reading PowerPoint file: {error}")
