import pytest

from oh_jupyter.skills.file_reader import parse_docx, parse_latex, parse_pdf, parse_pptx


def make_pdf(texts):
    """The smallest PDF with a page for each text."""
    count = len(texts)
    font = 3 + 2 * count
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = b" ".join(b"%d 0 R" % (3 + 2 * n) for n in range(count))
    objects.append(b"<</Type/Pages/Count %d/Kids[%s]>>" % (count, kids))
    for number, text in enumerate(texts):
        stream = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode()
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"
            b"/Resources<</Font<</F1 %d 0 R>>>>>>" % (4 + 2 * number, font)
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
    objects.append(b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%sendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return (
        data
        + b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\n"
        % (
            len(objects) + 1,
            table,
            len(objects) + 1,
        )
        + b"startxref\n%d\n%%%%EOF" % len(data)
    )


def test_pdf(tmp_path, capsys):
    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf(["Hello", "World"]))
    parse_pdf(str(path))
    assert capsys.readouterr().out == (
        f"[Reading PDF file from {path}]\n@@ Page 1 @@\nHello\n\n@@ Page 2 @@\nWorld\n"
    )


def test_docx(tmp_path, capsys):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("First.")
    document.add_paragraph("Second.")
    path = tmp_path / "a.docx"
    document.save(str(path))
    parse_docx(str(path))
    assert capsys.readouterr().out == (
        f"[Reading DOCX file from {path}]\n@@ Page 1 @@\nFirst.\n\n@@ Page 2 @@\nSecond.\n\n\n"
    )


def test_latex(tmp_path, capsys):
    path = tmp_path / "a.tex"
    path.write_text(r"\begin{document}Hello \textbf{World}, $\alpha$\end{document}")
    parse_latex(str(path))
    assert capsys.readouterr().out == (
        f"[Reading LaTex file from {path}]\nHello World, \N{GREEK SMALL LETTER ALPHA}\n"
    )


def test_pptx(tmp_path, capsys):
    pptx = pytest.importorskip("pptx")
    presentation = pptx.Presentation()
    for title in ("One", "Two"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = title
    path = tmp_path / "a.pptx"
    presentation.save(str(path))
    parse_pptx(str(path))
    assert capsys.readouterr().out == (
        f"[Reading PowerPoint file from {path}]\n@@ Slide 1 @@\nOne\n@@ Slide 2 @@\nTwo\n"
    )


@pytest.mark.parametrize(
    ("parse", "kind", "package"),
    [
        (parse_pdf, "PDF", "pypdf"),
        (parse_docx, "DOCX", "docx"),
        (parse_latex, "LaTex", "pylatexenc"),
        (parse_pptx, "PowerPoint", "pptx"),
    ],
)
def test_unreadable_files_are_reported_and_not_raised(parse, kind, package, tmp_path, capsys):
    pytest.importorskip(package)
    broken = tmp_path / "broken"
    broken.write_bytes(b"\xff\xfe not a document")
    for path in ("/no/such/file", str(broken), str(tmp_path)):
        parse(path)
        first, second, *_ = capsys.readouterr().out.splitlines()
        assert first == f"[Reading {kind} file from {path}]"
        assert second.startswith(f"Error reading {kind} file: ")
