"""The markers in a terminal's output: where a command's own output begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

END = b"\x1b\\"


@dataclass(frozen=True)
class Marker:
    """A marker: ``b`` before a command, ``e`` after it, ``r`` from a bash that has just started.

    Our own are ``s``, to know that all before it has arrived, and ``x``, at the end of the shell.
    """

    kind: str
    command_id: str = ""
    payload: str = ""  # ASCII; the report of a shell that has no report line


class MarkerParser:
    r"""Separates markers ``ESC ] TOKEN ; KIND ; ID ESC \\`` from output, wherever pieces end.

    No listing of the shell's functions looks like one: they show the token, but no escape
    character.
    """

    def __init__(self, token: str) -> None:
        self._prefix = b"\x1b]" + token.encode() + b";"
        self._pending = b""

    def write(self, marker: Marker) -> bytes:
        """A marker as it stands in the output."""
        return self._prefix + f"{marker.kind};{marker.command_id}".encode() + END

    def split(self, data: bytes) -> Iterator[bytes | Marker]:
        """Output and markers in order; the beginning of a marker is kept until the rest comes."""
        data = self._pending + data
        position = 0
        while (start := data.find(self._prefix, position)) >= 0:
            end = data.find(END, start)
            if end < 0:
                break
            yield data[position:start]
            yield Marker(*data[start + len(self._prefix) : end].decode().split(";", 2))
            position = end + len(END)
        if start < 0:
            start = len(data)
            escape = data.rfind(b"\x1b", max(position, start - len(self._prefix) + 1))
            if escape >= 0 and self._prefix.startswith(data[escape:]):
                start = escape
        self._pending = data[start:]
        yield data[position:start]

    def flush(self) -> bytes:
        """Take what was kept as output, when nothing can follow."""
        pending, self._pending = self._pending, b""
        return pending
