"""The file in a multipart form, taken out while the form arrives."""

from __future__ import annotations

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from oh_jupyter.errors import WireError

__all__ = ["FileForm"]


class FileForm:
    """Reads a ``multipart/form-data`` body; the file is the part named ``file``.

    Attributes:
        filename: Name of the file, once its part has begun; None before.
        complete: Whether the end of the form has arrived.
    """

    def __init__(self, content_type: str) -> None:
        """Begin."""
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise WireError("Send the file as multipart/form-data, in a part named 'file'", "file")
        self.filename: str | None = None
        self.complete = False
        self._headers: dict[bytes, bytes] = {}
        self._name = self._value = b""
        self._in_file = False
        self._pieces: list[bytes] = []
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._headers.clear,
                "on_header_field": self._on_name,
                "on_header_value": self._on_value,
                "on_header_end": self._on_header,
                "on_headers_finished": self._on_headers,
                "on_part_data": self._on_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )

    def feed(self, chunk: bytes) -> list[bytes]:
        """What of the file is in the next bytes of the body; WireError if the form is malformed."""
        try:
            self._parser.write(chunk)
        except MultipartParseError as problem:
            raise WireError(f"The form cannot be read: {problem}", "file") from None
        pieces, self._pieces = self._pieces, []
        return pieces

    def _on_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _on_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header(self) -> None:
        self._headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _on_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        if options.get(b"name") == b"file" and self.filename is None:
            self.filename = options.get(b"filename", b"").decode("utf-8", "replace")
            self._in_file = True

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            self._pieces.append(data[start:end])

    def _on_part_end(self) -> None:
        self._in_file = False

    def _on_end(self) -> None:
        self.complete = True
