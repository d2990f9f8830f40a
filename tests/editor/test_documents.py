"""Documents are shown as Markdown, by the converter of the extra `documents`."""

from __future__ import annotations

import io
import sys
import wave
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from PIL import Image

from oh_jupyter.editor import EditorError, FileEditor

# The converters of these formats are not clean of deprecations.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def view(editor):
    return lambda path, **arguments: editor(command="view", path=str(path), **arguments)


def word(path: Path) -> None:
    document = docx.Document()
    document.add_heading("Title")
    document.add_paragraph("Hello")
    table = document.add_table(rows=2, cols=2)
    for number, cell in enumerate(cell for row in table.rows for cell in row.cells):
        cell.text = str(number)
    document.save(str(path))


def slides(path: Path) -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[0])
    slide.shapes.title.text = "Deck"
    slide.notes_slide.notes_text_frame.text = "Say it"
    presentation.save(str(path))


def sheet(path: Path) -> None:
    workbook = openpyxl.Workbook()
    workbook.active.append(["a", 1])
    workbook.create_sheet("Second").append(["b"])
    workbook.save(path)
    workbook.close()


def pdf(path: Path, text: str = "Hello PDF") -> None:
    """Write the smallest PDF that has a text."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % p for p in places)
    data += b"trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % start
    path.write_bytes(data)


def recording(path: Path) -> None:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(8000 * 4 * 90))
    path.write_bytes(buffer.getvalue())


@pytest.mark.parametrize(
    ("name", "make", "shown"),
    [
        ("a.docx", word, "# Title\n\nHello\n\n|  |  |\n| --- | --- |\n| 0 | 1 |\n| 2 | 3 |\n"),
        ("b.PPTX", slides, "<!-- Slide number: 1 -->\n# Deck\n\n### Notes:\nSay it\n"),
        ("c.xlsx", sheet, "## Sheet\n| a | 1 |\n| --- | --- |\n\n## Second\n| b |\n| --- |\n"),
        ("d.pdf", pdf, "Hello PDF\n\n\n"),
    ],
)
def test_a_document_is_shown_as_markdown(view, workspace, name, make, shown) -> None:
    path = workspace / name
    make(path)
    header = f"Here's the content of the file {path} displayed in Markdown format:\n"
    assert view(path).output == header + shown
    assert view(path, view_range=[1, 1]).output == header + shown
    with pytest.raises(EditorError, match=r"only the `view` command can be used on supported"):
        FileEditor()(command="str_replace", path=path, old_str="a", new_str="b")


def test_a_recording_is_described(view, workspace) -> None:
    path = workspace / "a.wav"
    recording(path)
    assert view(path).output == (
        f"Here's the content of the file {path} displayed in Markdown format:\n"
        "NumChannels: 2\nSampleRate: 8000\nBitsPerSample: 16\nDuration: 1:30.00\n\n"
        "### Audio Transcript:\nThe editor does not transcribe, since that would send the "
        "recording to a service. Use the skill `parse_audio` with a configured model.\n"
    )


def test_the_tags_of_a_recording_are_shown(view, write) -> None:
    title = b"\x03A song"
    frame = b"TIT2" + len(title).to_bytes(4, "big") + b"\0\0" + title
    header = b"ID3\x03\0\0\0\0\0" + bytes([len(frame)])
    assert "\nTitle: A song\n" in view(write("a.mp3", header + frame + bytes(100))).output


def test_a_scanned_pdf_is_not_just_empty(view, workspace) -> None:
    path = workspace / "scan.pdf"
    Image.new("RGB", (50, 50), "red").save(path)
    assert "(The document has 1 page without any text; they may be scanned.)" in view(path).output


def test_a_long_document_is_clipped(view, workspace) -> None:
    path = workspace / "long.docx"
    document = docx.Document()
    document.add_paragraph("word " * 5000)
    document.save(str(path))
    output = view(path).output
    assert "Please use Python libraries to view the entire file" in output
    assert len(output) < 16_500


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", b"PK\x03\x04" + bytes(200)),
        ("a.xlsx", b""),
        ("a.pptx", b"text"),
        ("a.pdf", b"%PDF-1.7 broken"),
        ("a.pdf", b""),
        ("a.m4a", b"RIFF"),
        ("a.flac", bytes(100)),
    ],
)
def test_a_broken_document_is_an_error_and_not_a_crash(view, write, name, data) -> None:
    path = write(name, data)
    with pytest.raises(EditorError, match="Error in converting file to Markdown: ") as caught:
        view(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(("name", "package"), [("a.pdf", "markitdown"), ("a.mp3", "tinytag")])
def test_a_package_that_is_not_installed_is_named(view, write, monkeypatch, name, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EditorError, match=rf"needs the package {package}\. Install it with: pip"):
        view(write(name, b"x"))


@pytest.mark.parametrize(
    ("suffix", "kind"),
    [
        (".png", "png"),
        (".jpg", "jpeg"),
        (".jpeg", "jpeg"),
        (".gif", "gif"),
        (".webp", "webp"),
        (".bmp", "bmp"),
    ],
)
def test_an_image_is_shown(view, workspace, suffix, kind) -> None:
    path = workspace / f"a{suffix}"
    Image.new("RGB", (4, 4)).save(path)
    result = view(path)
    assert result.output == f"Image file {path} read successfully. Displaying image content."
    (url,) = result.image_urls
    assert url.startswith(f"data:image/{kind};base64,")
