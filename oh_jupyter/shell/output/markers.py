"""The marks in a terminal's output: where a command's own output begins and ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mark", "MarkSplitter"]

END = b"\x1b\\"


@dataclass(frozen=True)
class Mark:
    """One mark.

    Attributes:
        kind: ``b`` before a command, ``e`` after it, ``r`` from a bash that has just started; of
            our own: ``s`` to know that all before it has arrived, ``x`` at the end of the shell.
        command_id: The command, for kinds that belong to one.
        payload: What a shell without a report line says in the mark: ASCII, no escape character.
    """

    kind: str
    command_id: str = ""
    payload: str = ""


class MarkSplitter:
    r"""Separates marks from output, wherever the pieces that are read happen to end.

    A mark is the escape sequence ``ESC ] TOKEN ; KIND ; ID ESC \\``. The shell's functions, when
    somebody lists them, show the token but no escape character, so no listing looks like a mark.

    Args:
        token: The shell's random token.
    """

    def __init__(self, token: str) -> None:
        self._prefix = b"\x1b]" + token.encode() + b";"
        self._pending = b""

    def write(self, mark: Mark) -> bytes:
        """Return a mark as it stands in the output.

        Args:
            mark: The mark.

        Returns:
            Its bytes.
        """
        return self._prefix + f"{mark.kind};{mark.command_id}".encode() + END

    def split(self, data: bytes) -> Iterator[bytes | Mark]:
        """Split what was read.

        Args:
            data: The next bytes; the beginning of a mark is kept until the rest of it comes.

        Yields:
            Output and marks, in order.
        """
        data = self._pending + data
        position = 0
        while (start := data.find(self._prefix, position)) >= 0:
            end = data.find(END, start)
            if end < 0:
                break
            yield data[position:start]
            yield Mark(*data[start + len(self._prefix) : end].decode().split(";", 2))
            position = end + len(END)
        if start < 0:
            start = len(data)
            escape = data.rfind(b"\x1b", max(position, start - len(self._prefix) + 1))
            if escape >= 0 and self._prefix.startswith(data[escape:]):
                start = escape
        self._pending = data[start:]
        yield data[position:start]

    def rest(self) -> bytes:
        """Take what was kept, when nothing can follow.

        Returns:
            The bytes, which are output.
        """
        rest, self._pending = self._pending, b""
        return rest
