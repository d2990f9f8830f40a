"""Local files that pages may load, each judged and read as one open file.

Chromium opens a ``file:`` address wherever its path leads by then, and a page can have frames and
links to any file. With rules, the worker reads the files itself, and Chromium gets their contents.
"""

from __future__ import annotations

import asyncio
import html
import mimetypes
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from oh_jupyter.browser.worker.pdf_view import pdf_page
from oh_jupyter.containment import is_within, is_within_any
from oh_jupyter.descriptors import NO_LINK, has_paths, path_of, path_to
from oh_jupyter.errors import BrowserActionError
from oh_jupyter.visibility import Visibility

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Request, Route

MAX_FILE_BYTES = 100 * 1024**2
"""Maximum size of a file that a page loads under rules."""


@dataclass
class LocalFiles:
    """Rules for the files of one browser; without any, Chromium opens files itself.

    Attributes:
        notices: Receives messages about files that were not loaded.
        rules: The paths that pages do not see.
        opened: Real paths that a person named, or allowed an agent to open or upload.
        trees: Directories of the pages that a person named, outside of those that agents change.
        is_persons: Whether a person types the addresses of this step.
    """

    notices: list[str]
    rules: Visibility | None = None
    opened: set[str] = field(default_factory=set)
    trees: set[str] = field(default_factory=set)
    is_persons: bool = True
    _is_installed: bool = False

    def begin_step(self, files: Mapping[str, Any] | None) -> None:
        """Apply what the caller knows of a step's files; rules hold until others replace them."""
        self.is_persons = files is None or bool(files["is_persons"])
        if files is not None:
            self.rules = Visibility(**files["rules"])
            self.opened.update(files["opened"])
            self.trees.update(files.get("trees", ()))

    def state(self) -> dict[str, Any] | None:
        """Return what ``begin_step`` needs in another worker, which opens the same pages."""
        if self.rules is None:
            return None
        paths = {"opened": sorted(self.opened), "trees": sorted(self.trees)}
        return {"rules": asdict(self.rules), "is_persons": False, **paths}

    async def prepare(self, context: BrowserContext, address: str) -> bool:
        """Prepare for a typed address; return whether files are read here from now on.

        Raises BrowserActionError if it is that of a missing file.
        """
        if self.rules is None or urlsplit(address).scheme != "file":
            return False
        path = _path_of_address(address)
        if not os.path.lexists(path):
            raise BrowserActionError(
                f"FileNotFoundError: there is no file {path!r}. Check the address with a listing."
            )
        if self.is_persons:
            self._open_for_person(path)
        if not self._is_installed:
            # Only now: a browser with routes does not use its cache.
            await context.route(_is_file, self._answer)
            self._is_installed = True
        return True

    def _open_for_person(self, path: str) -> None:
        real = os.path.realpath(path)
        self.opened.add(real)
        if self.rules is not None and not is_within_any(real, map(os.path.realpath, self._roots)):
            self.trees.add(real if os.path.isdir(real) else os.path.dirname(real))

    @property
    def _roots(self) -> list[str]:
        return [] if self.rules is None else list(self.rules.roots)

    def uploaded(self, path: Path) -> str:
        """Return the path from which Chromium takes a file or folder that was judged.

        An agent could still replace it by a link, so it is copied from where it can.

        Raises:
            PermissionError: It is not the one that was judged.
        """
        if self.rules is None:
            return str(path.resolve())
        with _opened(str(path)) as (descriptor, real):
            if not self.is_persons and real not in self.opened:
                raise PermissionError(f"it leads to {real}, about which nobody was asked")
            if not is_within_any(real, map(os.path.realpath, self._roots)) or not has_paths():
                return real
            folder = Path(tempfile.mkdtemp(prefix="upload_"))
            target = folder / path.name
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                _copy_tree(descriptor, target)
            else:
                shutil.copyfile(path_to(descriptor), target)
            return str(target)

    async def _answer(self, route: Route) -> None:
        request = route.request
        path = _path_of_address(request.url)
        respond = self._reader(path, _page_of(request), request.is_navigation_request())
        with suppress(Exception):  # the page may have gone meanwhile
            try:
                response = await asyncio.to_thread(respond)
            except PermissionError as error:
                self.notices.append(f"{path} was not loaded: {error.strerror or error}")
                await route.abort("accessdenied")
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                self.notices.append(f"{path} was not loaded: {reason}")
                await route.abort("failed")
            else:
                await route.fulfill(**response)

    def _reader(self, path: str, page: str, is_document: bool) -> Callable[[], dict[str, Any]]:
        def read() -> dict[str, Any]:
            with _opened(path) as (descriptor, real):
                if not self._may_load(real, page):
                    raise PermissionError(
                        f"it is {real}, which the sandbox hides. Ask the user to open it, or to "
                        "add it to sandbox_visible"
                    )
                return _response(descriptor, path, is_document)

        return read

    def _may_load(self, real: str, page: str) -> bool:
        if self.rules is None or real in self.opened or not self.rules.hides(real):
            return True
        # What a person opened may load what is beside it; agents cannot have made such a page.
        path = os.path.normpath(_path_of_address(page)) if _is_file(page) else ""
        return any(is_within(path, tree) and is_within(real, tree) for tree in self.trees)


def _is_file(url: str) -> bool:
    return urlsplit(url).scheme == "file"


def _path_of_address(address: str) -> str:
    return url2pathname(urlsplit(address).path)


def _page_of(request: Request) -> str:
    """Return the address of the tab that makes a request, "" for a tab that is not there yet."""
    try:
        return request.frame.page.main_frame.url
    except Exception:  # Playwright does not know the frame yet
        return ""


@contextmanager
def _opened(path: str) -> Iterator[tuple[int, str]]:
    """Yield a file's descriptor, -1 for a directory that cannot be opened, and its real path."""
    if not has_paths() and os.path.isdir(path):
        yield -1, os.path.realpath(path)
        return
    # Opening a pipe would wait for its other end.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        yield descriptor, path_of(descriptor) or os.path.realpath(path)
    finally:
        os.close(descriptor)


def _response(descriptor: int, path: str, is_document: bool) -> dict[str, Any]:
    """Return the arguments of ``Route.fulfill`` for an open file or directory."""
    status = None if descriptor < 0 else os.fstat(descriptor)
    if status is None or stat.S_ISDIR(status.st_mode):
        return _page(_listing(path if status is None else descriptor, path))
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("it is not a regular file")
    if status.st_size > MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {MAX_FILE_BYTES // 1024**2} MB")
    if is_document and path.lower().endswith(".pdf"):
        return _page(pdf_page(path_to(descriptor) if has_paths() else Path(path), Path(path)))
    with open(descriptor, "rb", closefd=False) as file:
        body = file.read()
    media_type = mimetypes.guess_type(path)[0]
    return {"body": body} if media_type is None else {"body": body, "content_type": media_type}


def _page(text: str) -> dict[str, Any]:
    return {"body": text, "content_type": "text/html; charset=utf-8"}


def _listing(directory: int | str, path: str) -> str:
    """Return a page with links to what is in a directory."""
    with os.scandir(directory) as entries:
        names = sorted(entry.name + "/" * entry.is_dir() for entry in entries)
    title = html.escape(f"Index of {os.path.join(path, '')}")
    base = quote(os.path.join(path, ""))
    rows = "".join(
        f'<li><a href="{base}{quote(name, errors="surrogateescape")}">'
        f"{html.escape(os.fsencode(name).decode('utf-8', 'replace'))}</a></li>"
        for name in names
    )
    return f"<!doctype html><title>{title}</title><h1>{title}</h1><ul>{rows}</ul>"


def _copy_tree(directory: int, target: Path) -> None:
    """Copy the regular files of an open directory; links are left out."""
    for parent, _, names, opened in os.fwalk(".", dir_fd=directory):
        folder = target / parent
        folder.mkdir(parents=True)
        for name in names:
            with suppress(OSError):  # a link, or a file that may not be read
                _copy_file(name, opened, folder / name)


def _copy_file(name: str, directory: int, target: Path) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | NO_LINK, dir_fd=directory)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            shutil.copyfile(path_to(descriptor), target)
    finally:
        os.close(descriptor)
