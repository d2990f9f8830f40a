"""Detection of the encoding of a file, and of binary files.

Valid UTF-8 is UTF-8; any other guess counts only if encoding returns the same bytes.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple


class Encoding(NamedTuple):
    """Codec of a file, and its byte order mark or b""."""

    name: str
    bom: bytes = b""


UTF8 = Encoding("utf-8")

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_BOMS = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)
_SIGNATURES = (
    b"%PDF-",
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"GIF8",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"\x7fELF",
)
_STARTS = (*_SIGNATURES, *(encoding.bom for encoding in _BOMS))
_NUL_WINDOW_BYTES = 8000  # git calls a file with a NUL here binary
_SAMPLE_BYTES = 64 * 1024  # enough to distinguish code pages, and quick
_CANDIDATES = ["cp1252", "cp1251", "cp932", "gb18030", "euc_kr", "big5", "koi8_r", "euc_jp"]
_CODING_LINE = re.compile(rb"^[ \t\f]*(?:#|//|/\*|\"|%|;).*?coding[:=][ \t]*([-\w.]+)")
# Codecs without state, in which an ASCII byte stands for itself.
_STATELESS = ("ascii", "big5", "cp", "euc", "gb", "iso8859", "koi8", "kz1048", "mac", "shift_jis")
_CONTROL = bytes(b for b in range(32) if b not in b"\t\n\r\f\v\b\x1b") + b"\x7f"


def detect(data: bytes) -> Encoding | None:
    """Return the encoding of a whole file; None if it is binary."""
    decoded = decode(data)
    return None if decoded is None else decoded[0]


def decode(data: bytes) -> tuple[Encoding, str] | None:
    """Return the encoding and the text of a whole file; None if it is binary."""
    if not data.startswith(_STARTS) and b"\0" not in data[:_NUL_WINDOW_BYTES]:
        try:
            return UTF8, data.decode()
        except UnicodeDecodeError:
            pass
    encoding = _detect_other(data)
    if encoding is None:
        return None
    return encoding, data[len(encoding.bom) :].decode(encoding.name)


def _detect_other(data: bytes) -> Encoding | None:
    """Detect an encoding other than UTF-8, or UTF-8 with a mark or NULs."""
    for encoding in _BOMS:
        if data.startswith(encoding.bom) and _round_trips(data[len(encoding.bom) :], encoding.name):
            return encoding
    if data.startswith(_SIGNATURES) or b"\0" in data[:_NUL_WINDOW_BYTES]:
        return None
    sample = data[:_SAMPLE_BYTES]
    if b"\0" in data or len(sample.translate(None, _CONTROL)) < 0.997 * len(sample):
        return None
    for name in (_declared(data), _guessed(data), "cp1252"):
        if name is not None and _round_trips(data, name):
            return Encoding(name)
    return Encoding("latin-1")


def _round_trips(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except (UnicodeError, LookupError):
        return False


def _declared(data: bytes) -> str | None:
    """Return the encoding of a coding line of Python, Emacs or Vim in the first two lines."""
    for line in data[:1000].split(b"\n")[:2]:
        match = _CODING_LINE.match(line)
        if match is None:
            continue
        try:
            name = codecs.lookup(match[1].decode("ascii", "replace")).name
        except LookupError:
            return None
        return name if name.startswith(_STATELESS) else None
    return None


def _guessed(data: bytes) -> str | None:
    start = re.search(rb"[\x80-\xff]", data)
    sample = data[start.start() if start else 0 :][:_SAMPLE_BYTES]
    runs = re.findall(rb"[\x80-\xff]+", sample)
    # Single letters among ASCII are a western language, where a statistical guess sees
    # Cyrillic in "für". Cyrillic and East Asian text comes in runs.
    if not runs or sum(map(len, runs)) < 2 * len(runs):
        return None
    from charset_normalizer import from_bytes

    # Whole lines, so that the sample does not end inside a character.
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    for match in from_bytes(sample, cp_isolation=_CANDIDATES):
        # Short Chinese text looks like Korean, but Korean has few Chinese characters.
        text = str(match)
        chinese = sum("\u4e00" <= character <= "\u9fff" for character in text)
        if match.encoding != "euc_kr" or chinese < 0.1 * max(1, len(text)):
            return str(match.encoding)
    return None
