"""Long texts of events, each in a separate file named by its digest.

The event contains the first part of the text, which OpenHands' readers show, and a reference to the
whole under a key that they ignore: ``{"oh_jupyter": {"blobs": {"/args/content": {"key": ...,
"bytes": ..., "sha256": ...}}}}``, where the name is a JSON pointer (RFC 6901) into the event.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from oh_jupyter.errors import StorageError
from oh_jupyter.events.json import encode_json
from oh_jupyter.events.wire import BLOBS_KEY, EXTENSION_KEY, EncodedEvent
from oh_jupyter.text import shorten

MAX_INLINE_CHARS = 1024 * 1024
"""Maximum length of a text in an event's own file."""

_FIRST_PART_CHARS = 10_000
_CODEC = "utf-8", "surrogatepass"


def split_blobs(event: EncodedEvent, folder: str, max_chars: int) -> tuple[bytes, dict[str, bytes]]:
    """Return the JSON of an event with shortened long texts, and the whole texts by path."""
    encoded = event.json()
    texts = {} if len(encoded) <= max_chars else dict(_long_texts(event.wire, "", max_chars))
    if not texts:
        return encoded, {}
    blobs: dict[str, bytes] = {}
    references: dict[str, dict[str, Any]] = {}
    wire = event.wire
    for pointer, text in texts.items():
        first_part = shorten(text, _FIRST_PART_CHARS, marker="")
        wire = _with(wire, pointer, f"{first_part}\n[... {len(text)} characters]")
        if pointer == "/message":  # it repeats another text and is never read back
            continue
        data = text.encode(*_CODEC)
        digest = hashlib.sha256(data).hexdigest()
        key = f"{folder}/{digest}"
        blobs[key] = data
        references[pointer] = {"key": key, "bytes": len(data), "sha256": digest}
    extensions = {**wire.get(EXTENSION_KEY, {}), BLOBS_KEY: references}
    return encode_json({**wire, EXTENSION_KEY: extensions}), blobs


def has_blobs(wire: dict[str, Any]) -> bool:
    """Return whether an event refers to texts in separate files."""
    return bool(_references(wire))


def join_blobs(
    wire: dict[str, Any], folder: str, read: Callable[[str], bytes], *, missing_ok: bool = False
) -> dict[str, Any]:
    """Restore the whole texts; for a missing one, raise StorageError or note it in the text."""
    for pointer, reference in _references(wire).items():
        try:
            wire = _with(wire, pointer, _read(reference, folder, read))
        except (LookupError, TypeError, ValueError, OSError) as error:
            notice = (
                f"The text {pointer!r} of event {wire.get('id')} is missing: its file in "
                f"{folder!r} cannot be read ({error}). The event contains its first part."
            )
            if not missing_ok:
                raise StorageError(notice) from error
            wire = _with(wire, pointer, partial("{1}\n[{0}]".format, notice))
    return wire


def _references(wire: dict[str, Any]) -> dict[str, Any]:
    extensions = wire.get(EXTENSION_KEY)
    references = extensions.get(BLOBS_KEY) if isinstance(extensions, dict) else None
    return references if isinstance(references, dict) else {}


def _read(reference: dict[str, Any], folder: str, read: Callable[[str], bytes]) -> str:
    digest = str(reference["sha256"])
    if not digest.isalnum():  # an event must not choose an arbitrary path
        raise ValueError(f"{digest!r} is not a digest")
    data = read(f"{folder}/{digest}")
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("it was changed")
    return data.decode(*_CODEC)


def _long_texts(
    value: Any, pointer: str, max_chars: int, depth: int = 100
) -> Iterator[tuple[str, str]]:
    """Iterate over the texts above a length, with their JSON pointers."""
    if isinstance(value, str):
        if len(value) > max_chars:
            yield pointer, value
    elif depth and isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            escaped = str(name).replace("~", "~0").replace("/", "~1")
            yield from _long_texts(inner, f"{pointer}/{escaped}", max_chars, depth - 1)


def _with(value: Any, pointer: str, new: str | Callable[[str], str]) -> Any:
    """Return a copy of JSON data with another text at a pointer."""
    if not pointer:
        return new if isinstance(new, str) else new(value)
    escaped, _, rest = pointer[1:].partition("/")
    name = escaped.replace("~1", "/").replace("~0", "~")
    copy = value.copy()
    key = int(name) if isinstance(value, list) else name
    copy[key] = _with(value[key], f"/{rest}" if rest else "", new)
    return copy
