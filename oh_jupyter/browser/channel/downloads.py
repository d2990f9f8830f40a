"""Downloads, which the worker saves and the parent moves into the workspace."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from oh_jupyter.browser.channel.addresses import shortened_url
from oh_jupyter.browser.channel.own_folder import own_folder

if TYPE_CHECKING:
    from playwright.async_api import Download, Page

DOWNLOADS_DIR = ".downloads"
MAX_NAME_BYTES = 200
"""Maximum length of a downloaded file's name, which may get a number."""
COPY_BYTES = 1024 * 1024
OFFICE_EXTENSIONS = {"word": ".docx", "xl": ".xlsx", "ppt": ".pptx"}
"""Extension of an Office file by a directory in its archive."""


def move_downloads_to_workspace(
    downloads: Iterable[Mapping[str, str]], workspace_dir: str
) -> list[str]:
    """Move ``downloads`` of an observation into the workspace.

    Each file keeps its own name in ``<workspace>/.downloads``. A page or a server chooses it, so
    nothing of it reaches an agent but an extension.

    Returns:
        Paths of copies, ``<workspace>/file_N<extension>``.
    """
    workspace = Path(workspace_dir)
    copies = []
    for item in downloads:
        source = Path(item["path"])
        extension = file_extension(source)
        with own_folder(workspace, DOWNLOADS_DIR) as folder:
            if source.parent == workspace / DOWNLOADS_DIR:
                copied = folder / source.name
            else:
                copied = _copy_as_new(source, folder, _numbered(item["name"]))
                source.unlink()
            taken = {name.partition(".")[0] for name in os.listdir(workspace)}
            names = (f"file_{number}" for number in count(1))
            unused = (f"{name}{extension}" for name in names if name not in taken)
            copies.append(str(_copy_as_new(copied, workspace, unused)))
    return copies


def _copy_as_new(source: Path, directory: Path, names: Iterable[str]) -> Path:
    """Copy a file under the first name that nothing has; no link is followed."""
    for name in names:
        try:
            with open(source, "rb") as reader, open(directory / name, "xb") as writer:
                shutil.copyfileobj(reader, writer, COPY_BYTES)
            return directory / name
        except FileExistsError:
            continue
    raise FileNotFoundError(f"{directory} has no unused name")


def _numbered(name: str) -> Iterator[str]:
    """Yield a name, and then the same with a number."""
    yield name
    for number in count(2):
        yield f"{Path(name).stem} ({number}){Path(name).suffix}"


def unused_path(directory: Path, name: str) -> Path:
    """Return an unused path; append a number to the name if it is taken."""
    return next(directory / each for each in _numbered(name) if not (directory / each).exists())


def file_name(suggested: str) -> str:
    """Return the name of a file in a path that a page suggests, on one line and not too long."""
    name = Path(suggested.replace("\\", "/")).name
    name = "".join(character if character.isprintable() else "_" for character in name)
    if not name.strip("."):
        return ""
    start = name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
    if start == name:
        return name
    suffix = plain_suffix(name)
    return start[: -len(suffix) or None] + suffix


def file_extension(path: Path) -> str:
    """Guess a file's extension, with its period, from its content or else from its name."""
    import puremagic

    if zipfile.is_zipfile(path):
        # puremagic looks at the first bytes, which are the same in all of these.
        with zipfile.ZipFile(path) as archive:
            names = {name.partition("/")[0] for name in archive.namelist()}
        known = [extension for name, extension in OFFICE_EXTENSIONS.items() if name in names]
        return known[0] if known else plain_suffix(path.name).lower() or ".zip"
    try:
        guesses = [guess for guess in puremagic.magic_file(path) if _has_evidence(guess.byte_match)]
    except (ValueError, OSError, puremagic.PureError):
        guesses = []
    for guess in guesses:
        if guess.extension.strip() == path.suffix.lower():
            # The name decides between several matches.
            return path.suffix.lower()
    for guess in guesses:
        if guess.extension.strip():
            return str(guess.extension.strip())
    return plain_suffix(path.name)


def plain_suffix(name: str) -> str:
    """Return a name's extension if it is one, and not the end of a sentence of the page."""
    return match[0] if (match := _SUFFIX.search(name)) else ""


_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}\Z")


def _has_evidence(matched: bytes | None) -> bool:
    """Return whether a match has bytes other than zero; puremagic 2 guesses texts without any."""
    return matched is not None and any(matched)


PDF_VIEWER = "chrome-extension://mhjfbmdgcfjbbpaeojofohoefgiehjai/"
"""Address of Chromium's built-in viewer, which is the same in all installations."""


class DownloadSaver:
    """Saver of downloads to a folder."""

    def __init__(self, folder: str, notices: list[str]) -> None:
        """Prepare; ``notices`` receives messages about unfinished and failed downloads."""
        self.saved: list[dict[str, str]] = []
        self.notices = notices
        self.is_unfinished = self.has_failed = False
        self._folder = Path(folder)
        self._running: set[asyncio.Task[None]] = set()
        self._of_step: dict[asyncio.Task[None], str] = {}
        self._viewed: WeakKeyDictionary[Page, str] = WeakKeyDictionary()

    def begin(self, download: Download) -> None:
        """Save a download when it finishes."""
        task = asyncio.ensure_future(self._save(download))
        self._running.add(task)
        self._of_step[task] = download.url
        task.add_done_callback(self._running.discard)

    def begin_step(self) -> None:
        """Start a step, which does not wait for earlier downloads."""
        self._of_step.clear()
        self.is_unfinished = self.has_failed = False

    async def finish_step(self, seconds: float) -> None:
        """Wait for the downloads of this step; report those that do not finish in time."""
        if not self._of_step:
            return
        await asyncio.wait(set(self._of_step), timeout=seconds)
        for task, url in self._of_step.items():
            if not task.done():
                self.is_unfinished = True
                self.notices.append(
                    f"The download of {shortened_url(url)} is still running; a later step will "
                    "report it when it finishes."
                )
        self._of_step.clear()

    async def keep_viewed_pdf(self, page: Page) -> None:
        """Save the PDF in Chromium's viewer; the headless shell has no viewer and downloads it."""
        has_viewer = any(frame.url.startswith(PDF_VIEWER) for frame in page.frames)
        if not has_viewer or self._viewed.get(page) == page.url:
            return
        with contextlib.suppress(Exception):
            # A page with an embedded PDF also has a viewer, but is not a PDF.
            if await page.evaluate("document.contentType") != "application/pdf":
                return
            self._viewed[page] = page.url
            response = await page.context.request.get(page.url)
            body = await response.body()
            await response.dispose()
            if b"%PDF-" not in body[:1024]:
                # A server may respond differently to a second request.
                self.notices.append(
                    f"The PDF {shortened_url(page.url)} could not be fetched, so it is not saved."
                )
                return
            name = file_name(unquote(urlsplit(page.url).path)) or "document.pdf"
            target = self._target(name)
            target.write_bytes(body)
            self._note(page.url, name, target)

    async def _save(self, download: Download) -> None:
        name = file_name(download.suggested_filename) or "download"
        try:
            partial: Any = await download.path()
            target = self._target(name)
            await download.save_as(target)
            with contextlib.suppress(OSError):
                os.unlink(partial)
        except Exception as error:
            reason = str(error).splitlines()[0]
            self.has_failed = True
            self.notices.append(f"The download of {shortened_url(download.url)} failed: {reason}")
            return
        self._note(download.url, name, target)

    def _target(self, name: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return unused_path(self._folder, name)

    def _note(self, url: str, name: str, path: Path) -> None:
        self.saved.append({"url": url, "name": name, "path": str(path)})
