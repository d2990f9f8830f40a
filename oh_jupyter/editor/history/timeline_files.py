"""Timelines on disk, with a cache that is valid across processes."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Lock

from oh_jupyter.editor.history.timeline import Timeline

__all__ = ["TimelineFiles"]

_MAX_CACHED = 16  # timelines in memory; each may have all the steps of a file

_START = b'{"token": "'
_TOKEN_LENGTH = 16


class TimelineFiles:
    """Reader and writer of timelines, with a cache.

    A file begins with a random token that no other has. So whether it is the one that
    was written or read before is known from its first bytes, in whatever process and
    under whatever name it was written.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Timeline] = OrderedDict()
        self._lock = Lock()

    def read(self, file: Path) -> Timeline | None:
        """Timeline in a file, None if there is no file; raises ValueError if it holds none."""
        try:
            stream = open(file, "rb", buffering=0)  # noqa: SIM115
        except FileNotFoundError:
            return None
        with stream:
            start = stream.read(len(_START) + _TOKEN_LENGTH)
            token = start[len(_START) :] if start.startswith(_START) else b""
            with self._lock:
                timeline = self._known.get(token)
            if timeline is not None:
                return timeline
            try:
                timeline = Timeline.from_json(json.loads(start + stream.readall()))
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{file} holds no timeline: {error!r}") from None
        self._remember(token, timeline)
        return timeline

    def write(self, file: Path, timeline: Timeline, path: Path, **more: str | None) -> int:
        """Write a timeline in one step; the number of bytes."""
        token = os.urandom(_TOKEN_LENGTH // 2).hex().encode()
        head = json.dumps({"version": 1, "path": str(path), **more})
        body = f"{head[:-1]}, {timeline.dumps()[1:]}".encode()
        data = _START + token + b'", ' + body[1:]
        temporary = file.with_suffix(".tmp")
        try:
            temporary.write_bytes(data)
            os.replace(temporary, file)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._remember(token, timeline)
        return len(data)

    def _remember(self, token: bytes, timeline: Timeline) -> None:
        if not token:
            return
        with self._lock:
            self._known[token] = timeline
            while len(self._known) > _MAX_CACHED:
                self._known.popitem(last=False)
