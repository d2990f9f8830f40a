"""HTML pages that show a picture or a PDF file, as OpenHands' file viewer does.

Its agents open them in a browser without a PDF viewer, and expect the pages of a PDF as canvases.
These functions block; call them in a worker thread.
"""

from __future__ import annotations

import base64
import hashlib
import html
import mimetypes
from collections.abc import Iterator
from pathlib import Path

from oh_jupyter.runtime.transfers.downloads import file_pieces

STYLE = (
    "body{margin:0;background:#eee;text-align:center}img,canvas{max-width:100%}"
    "pre{white-space:pre-wrap;text-align:left;margin:1em auto;max-width:60em}"
)

DRAW = (
    "addEventListener('load',()=>{for(const image of document.querySelectorAll('section>img')){"
    "const canvas=image.nextElementSibling;canvas.width=image.naturalWidth;"
    "canvas.height=image.naturalHeight;canvas.getContext('2d').drawImage(image,0,0);"
    "image.remove()}})"
)
"""Script that draws the pictures of pages on their canvases."""

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(DRAW.encode()).digest()).decode()}'"
)
"""Content security policy of the pages: no script but ``DRAW``, and nothing from elsewhere."""


def page_pieces(source: Path, contents: Path | None = None) -> Iterator[bytes]:
    """Yield the page of a file in pieces; ``contents`` is another path that leads to it."""
    name = html.escape(source.name)
    head = f"<!doctype html><title>File Viewer - {name}</title><style>{STYLE}</style>"
    yield f"{head}<main>".encode()
    show = _pdf_sections if source.suffix.lower() == ".pdf" else _picture
    yield from show(source, contents or source)
    yield b"</main>"


def _picture(source: Path, contents: Path) -> Iterator[bytes]:
    kind = mimetypes.guess_type(source.name)[0]
    yield f'<img alt="{html.escape(source.name)}" src="data:{kind};base64,'.encode()
    rest = b""
    for piece in file_pieces(contents):
        whole = rest + piece
        rest = whole[len(whole) - len(whole) % 3 :]
        yield base64.b64encode(whole[: len(whole) - len(rest)])
    yield base64.b64encode(rest) + b'">'


def _pdf_sections(source: Path, contents: Path) -> Iterator[bytes]:
    """Yield the pages of a PDF file with their texts, or why they cannot be shown."""
    from oh_jupyter.browser.worker.pdf_view import pdf_pages

    try:
        pages, count = pdf_pages(contents)
    except Exception as error:  # the renderer may raise anything for a damaged file
        reason = f"{source.name} cannot be shown: {error}"
        yield f"<p>{html.escape(reason)}</p>".encode()
        return
    for page in pages:
        picture = base64.b64encode(page.picture)
        yield f'<section><img alt="{page.title}" src="data:image/png;base64,'.encode() + picture
        canvas = f'<canvas aria-label="{page.title}"></canvas>'
        yield f'">{canvas}<pre>{html.escape(page.text)}</pre></section>'.encode()
    if count > len(pages):
        yield f"<p>Only the first {len(pages)} of {count} pages are shown.</p>".encode()
    yield f"<script>{DRAW}</script>".encode()
