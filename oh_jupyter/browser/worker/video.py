"""Video of the screencast: WebM with each picture as a complete VP8 frame.

A WebP picture is such a frame, so this needs only Pillow. The file is playable at any time, even
if the browser ends unexpectedly.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from oh_jupyter.browser.worker.screencast import FRAME_INTERVAL_SECONDS, Screencast
from oh_jupyter.errors import BrowserError

QUALITY = 60
LAST_PICTURE_MS = 1000
"""Duration of the last picture: viewers look for the outcome."""
UNKNOWN_SIZE = b"\x01" + b"\xff" * 7
HEADER, SEGMENT, INFO, TRACKS, CLUSTER = 0x1A45DFA3, 0x18538067, 0x1549A966, 0x1654AE6B, 0x1F43B675
DURATION, TRACK, SIZE, TIME, BLOCK = 0x4489, 0xAE, 0xE0, 0xE7, 0xA3
KEY_FRAME_OF_TRACK_1 = b"\x81\x00\x00\x80"
"""Header of a block: its track, zero offset to its cluster's time, and the key frame flag."""


def element(number: int, content: bytes | int | str) -> bytes:
    """Encode a Matroska element."""
    if isinstance(content, int):
        content = content.to_bytes(8, "big")
    elif isinstance(content, str):
        content = content.encode()
    name = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return name + struct.pack(">Q", len(content) | 1 << 56) + content


def open_video(path: Path) -> BinaryIO:
    """Create the file of a video, with a number in its name if ``path`` exists."""
    number, candidate = 1, path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with contextlib.suppress(FileExistsError):
                return candidate.open("xb", buffering=0)
            number += 1
            candidate = path.with_stem(f"{path.stem}-{number}")
    except OSError as error:
        raise BrowserError(
            f"The video {path} cannot be written: {error.strerror}. Use a path in a writable "
            "folder."
        ) from error


async def record_video(
    screencast: Screencast, file: BinaryIO, size: tuple[int, int] | None
) -> None:
    """Write each new picture to a file, until cancelled; ``size`` is the viewport's, if fixed."""
    known, start = 0, time.monotonic()
    writer = VideoWriter(file, size)
    writing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    writing.set_result(None)

    def elapsed_ms() -> int:
        return round((time.monotonic() - start) * 1000)

    try:
        while True:
            try:
                known, picture = await screencast.next_frame(known)
            except Exception:  # the tab closes or has crashed
                await asyncio.sleep(FRAME_INTERVAL_SECONDS)
                continue
            writing = asyncio.ensure_future(asyncio.to_thread(writer.add, picture, elapsed_ms()))
            await asyncio.shield(writing)
    finally:
        # The thread continues to write after this task is cancelled.
        await asyncio.wait([writing])
        number, picture = screencast.frame
        with file, contextlib.suppress(OSError):
            if number != known and picture:
                writer.add(picture, elapsed_ms())
            writer.close(elapsed_ms() + LAST_PICTURE_MS)


class VideoWriter:
    """Writer of a video file; all pictures get one size, by default that of the first."""

    def __init__(self, file: BinaryIO, size: tuple[int, int] | None = None) -> None:
        self._file = file
        # The first picture may show the page before its viewport was set.
        self._size = size
        self._duration_at = 0

    def add(self, picture: str, milliseconds: int) -> None:
        """Add a picture in base64, shown from ``milliseconds`` on."""
        from PIL import Image

        with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
            if not self._duration_at:
                self._size = self._size or image.size
                self._begin(*self._size)
            frame = io.BytesIO()
            image.resize(self._size or image.size).save(frame, "WEBP", quality=QUALITY, method=0)
        # The VP8 frame follows the headers of the WebP file and of its only chunk.
        block = KEY_FRAME_OF_TRACK_1 + frame.getvalue()[20:]
        self._file.write(element(CLUSTER, element(TIME, milliseconds) + element(BLOCK, block)))

    def close(self, milliseconds: int) -> None:
        """Write the duration and close the file."""
        if self._duration_at:
            self._file.seek(self._duration_at)
            self._file.write(element(DURATION, struct.pack(">d", milliseconds)))
        self._file.close()

    def _begin(self, width: int, height: int) -> None:
        kind: dict[int, bytes | int | str] = {
            0x4286: 1,
            0x42F7: 1,
            0x42F2: 4,
            0x42F3: 8,
            0x4282: "webm",
            0x4287: 2,
            0x4285: 2,
        }
        info: dict[int, bytes | int | str] = {
            0x2AD7B1: 1_000_000,
            0x4D80: "oh_jupyter",
            0x5741: "oh_jupyter",
        }
        size: dict[int, bytes | int | str] = {0xB0: width, 0xBA: height}
        track: dict[int, bytes | int | str] = {
            0xD7: 1,
            0x73C5: 1,
            0x83: 1,
            0x86: "V_VP8",
            SIZE: _elements(size),
        }
        duration = element(DURATION, struct.pack(">d", 0))
        head = element(HEADER, _elements(kind)) + SEGMENT.to_bytes(4, "big") + UNKNOWN_SIZE
        head += element(INFO, _elements(info) + duration)
        self._duration_at = len(head) - len(duration)
        self._file.write(head + element(TRACKS, element(TRACK, _elements(track))))


def _elements(contents: Mapping[int, bytes | int | str]) -> bytes:
    return b"".join(element(number, content) for number, content in contents.items())
