"""HTML view of local PDF files: pictures of the pages, with their text.

The headless shell lacks Chromium's PDF viewer, and the viewer's text is inaccessible elsewhere.
The worker therefore responds to a request for a local PDF with an HTML page made from it.
"""

from __future__ import annotations

import asyncio
import base64
import html
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import url2pathname

from oh_jupyter.errors import BrowserError

if TYPE_CHECKING:
    from playwright.async_api import Route

MAX_PAGES = 50
PIXELS_PER_POINT = 1.5
"""Picture dots per PDF point."""


async def show_pdf(route: Route) -> None:
    """Respond to a request for a local PDF file with an HTML page that shows it."""
    path = Path(url2pathname(urlsplit(route.request.url).path))
    if not path.is_file():
        await route.continue_()
        return
    body = await asyncio.to_thread(pdf_page, path, path)
    await route.fulfill(status=200, content_type="text/html; charset=utf-8", body=body)


def pdf_page(contents: Path, path: Path) -> str:
    """Return the page that shows a PDF file, or why it cannot be shown.

    ``contents`` leads to the file that is shown under the name of ``path``.
    """
    try:
        return pdf_to_html(contents, path.name)
    except Exception as error:  # the renderer may raise anything for a damaged file
        return (
            f"<title>{html.escape(path.name)}</title><p>The file {html.escape(str(path))} "
            f"could not be shown as a PDF: {html.escape(str(error))}</p>"
        )


@dataclass(frozen=True)
class PdfPage:
    """A page of a PDF file: its name, its picture as PNG, and its text."""

    title: str
    picture: bytes
    text: str


def pdf_pages(path: Path) -> tuple[list[PdfPage], int]:
    """Render the first ``MAX_PAGES`` pages of a PDF file, and count all of them.

    Raise BrowserError if pypdfium2 is not installed.
    """
    try:
        import pypdfium2
    except ImportError:
        raise BrowserError(
            "Showing PDFs needs the package pypdfium2. "
            "Install it with: pip install 'oh_jupyter[documents]'"
        ) from None

    document = pypdfium2.PdfDocument(path)
    try:
        pages = []
        for number in range(min(len(document), MAX_PAGES)):
            page = document[number]
            picture = io.BytesIO()
            page.render(scale=PIXELS_PER_POINT).to_pil().save(picture, "PNG", compress_level=1)
            text = page.get_textpage().get_text_bounded()
            title = f"Page {number + 1} of {len(document)}"
            pages.append(PdfPage(title, picture.getvalue(), text))
        return pages, len(document)
    finally:
        document.close()


def pdf_to_html(path: Path, title: str = "") -> str:
    """Render a PDF file as HTML; raise BrowserError if pypdfium2 is not installed."""
    pages, count = pdf_pages(path)
    sections = [
        f'<section aria-label="{page.title}"><img alt="{page.title}" '
        f'src="data:image/png;base64,{base64.b64encode(page.picture).decode("ascii")}">'
        f"<pre>{html.escape(page.text)}</pre></section>"
        for page in pages
    ]
    if count > MAX_PAGES:
        sections.append(f"<p>Only the first {MAX_PAGES} pages are shown.</p>")
    style = "body{margin:0;background:#eee;text-align:center}pre{white-space:pre-wrap;"
    style += "text-align:left;margin:1em auto;max-width:60em}img{max-width:100%}"
    name = html.escape(title or path.name)
    return f"<!doctype html><title>{name}</title><style>{style}</style>{''.join(sections)}"
