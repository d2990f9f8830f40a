"""Documents are shown as Markdown, by the converter of the extra `documents`."""

from __future__ import annotations

from pathlib import Path

import docx
import openpyxl
import pptx
import pytest

from oh_jupyter.editor import EditorError, FileEditor

# The converters of these formats are not clean of deprecations.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def word(path: Path) -> None:
    document = docx.Document()
    document.add_heading("Title")
    document.add_paragraph("Hello")
    document.save(str(path))


def slides(path: Path) -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[0])
    slide.shapes.title.text = "Deck"
    presentation.save(str(path))


def sheet(path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", 1])
    workbook.save(path)
    workbook.close()


@pytest.mark.parametrize(
    ("name", "make", "shown"),
    [
        ("a.docx", word, "# Title\n\nHello\n"),
        ("b.pptx", slides, "<!-- Slide number: 1 -->\n# Deck\n"),
        ("c.xlsx", sheet, "## Sheet\n| a | 1 |\n| --- | --- |\n"),
    ],
)
def test_a_document_is_shown_as_markdown(tmp_path: Path, name: str, make, shown: str) -> None:
    path = tmp_path / name
    make(path)
    result = FileEditor(history_dir=tmp_path / "history")(command="view", path=str(path))
    header = f"Here's the content of the file {path} displayed in Markdown format:\n"
    assert result.output == header + shown


def test_a_broken_document_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "broken.docx"
    path.write_bytes(b"PK\x03\x04" + bytes(200))
    with pytest.raises(EditorError, match=r"broken\.docx"):
        FileEditor(history_dir=tmp_path / "history")(command="view", path=str(path))
