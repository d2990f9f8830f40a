"""Effects of an Action: the files that it reads and changes, and the pages that it opens.

They are computed once, from the parsed Action. Questions, limits of tokens and the sandbox's rules
all use the same ones, so that no path of an Action is overlooked by one of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, singledispatch
from urllib.parse import unquote, urlsplit

from oh_jupyter.containment import is_within_any
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
)

MAX_ATTEMPTS = 20
"""Attempts to resolve a path whose links are replaced meanwhile."""


@dataclass(frozen=True)
class Effects:
    """Effects of an Action that are known before it starts.

    Commands and cells have none: nobody knows before which files they use.

    Attributes:
        reads: Absolute paths of files that are read, as the Action names them.
        writes: Absolute paths of files that are changed, made or removed.
        addresses: Addresses of pages that are opened, as typed.
        uploads: Whether files are sent to a page.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    uploads: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """All paths."""
        return (*self.reads, *self.writes)

    @cached_property
    def real(self) -> dict[str, set[str]]:
        """The files that each path leads to, resolved once for who judges and who acts."""
        return {path: real_paths(path) for path in self.paths}

    def outside(self, paths: Iterable[str], roots: Iterable[str]) -> Iterator[str]:
        """Yield the real paths that some of the paths lead to outside of some directories."""
        return outside_of((real for path in paths for real in sorted(self.real[path])), roots)


def effects(action: Action, cwd: str) -> Effects:
    """Return the effects of an Action.

    Args:
        action: The Action.
        cwd: Directory in which its relative paths begin.
    """
    return _effects(action, cwd)


def real_paths(path: str) -> set[str]:
    """Return the files that a path leads to.

    As the system resolves it, and with its ``..`` removed first, because programs do either. A path
    with a NUL character leads nowhere.
    """
    if "\0" in path:
        return set()
    return {_real_path(path), _real_path(os.path.normpath(path))}


def _real_path(path: str) -> str:
    """Return where a path leads, or the path itself if its links keep changing."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(OSError):  # a link that was there has gone
            return os.path.realpath(path)
    return os.path.abspath(path)


def outside_of(reals: Iterable[str], roots: Iterable[str]) -> Iterator[str]:
    """Yield the real paths that are outside of some directories."""
    real_roots = [os.path.realpath(root) for root in roots]
    for real in reals:
        if not is_within_any(real, real_roots):
            yield real


@singledispatch
def _effects(action: Action, cwd: str) -> Effects:
    return Effects()


@_effects.register
def _of_read(action: FileReadAction, cwd: str) -> Effects:
    return Effects(reads=(_absolute(action.path, cwd),))


@_effects.register
def _of_write(action: FileWriteAction, cwd: str) -> Effects:
    return Effects(writes=(_absolute(action.path, cwd),))


@_effects.register
def _of_edit(action: FileEditAction, cwd: str) -> Effects:
    path = _absolute(action.path, cwd)
    if action.command == "view":
        return Effects(reads=(path,))
    if action.command != "apply_patch":
        return Effects(writes=(path,))
    names: list[str] = []
    with suppress(OhJupyterError):  # the editor reports what is wrong with the patch
        names = _names_in_patch(action.content)
    # A patch of one file may be for the path itself; otherwise the path is their directory.
    return Effects(writes=(path, *(os.path.join(path, name) for name in names)))


@_effects.register
def _of_page(action: BrowseURLAction, cwd: str) -> Effects:
    return _pages([action.url], [], cwd)


@_effects.register
def _of_steps(action: BrowseInteractiveAction, cwd: str) -> Effects:
    from oh_jupyter.browser.channel.language import parse_actions

    try:
        calls = parse_actions(action.browser_actions)
    except OhJupyterError:
        return Effects()  # the browser rejects it with its own sentence
    addresses = [str(call.arguments["url"]) for call in calls if call.arguments.get("url")]
    uploaded: list[str] = []
    for call in calls:
        if call.name.endswith("upload_file"):
            files = call.arguments.get("file", [])
            names = [files] if isinstance(files, str) else map(str, files)
            uploaded += map(os.path.expanduser, names)
    return _pages(addresses, uploaded, cwd)


def _pages(addresses: Iterable[str], uploaded: list[str], cwd: str) -> Effects:
    from oh_jupyter.browser.channel.addresses import typed_address

    opened = tuple(addresses)
    reads = [_absolute(name, cwd) for name in uploaded]
    for address in opened:
        reads += _file_of(address.strip(), lambda text: typed_address(text, cwd))
    return Effects(reads=tuple(reads), addresses=opened, uploads=bool(uploaded))


def _file_of(address: str, typed: Callable[[str], str]) -> list[str]:
    try:
        parts = urlsplit(typed(address))
    except ValueError:
        return []
    is_file = parts.scheme.lower() in ("file", "view-source") and parts.path
    return [unquote(parts.path.removeprefix("file://"))] if is_file else []


def _absolute(path: str, cwd: str) -> str:
    return os.path.join(cwd, path)


def _names_in_patch(text: str) -> list[str]:
    """Return the names in a patch of several files."""
    from oh_jupyter.editor.patch.formats import parse_patch

    return [name for patch in parse_patch(text) for name in (patch.path, patch.new_path) if name]
