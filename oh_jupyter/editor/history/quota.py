"""Size limit of the edit history of a workspace.

What is on the disk is measured when a process first writes, and then each time it wrote
another sixteenth of the limit, so that an edit hardly ever pays for it. If it is too
much, the oldest steps are forgotten, of whatever file, until a tenth of the limit is
free. Steps of files that somebody edits in this very moment are left alone.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from oh_jupyter.editor.history.blobs import Blobs
from oh_jupyter.editor.history.timeline import Timeline
from oh_jupyter.editor.history.timeline_files import TimelineFiles
from oh_jupyter.locks import file_lock

__all__ = ["HistoryQuota"]

_MEASURED_FRACTION = 16
_FREED_FRACTION = 0.1


class HistoryQuota:
    """Size limit of a history."""

    def __init__(self, folder: Path, max_bytes: int, files: TimelineFiles) -> None:
        """Measure nothing yet."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._files = files
        self._unmeasured = max_bytes  # what other processes wrote before is not known
        self._lock = Lock()

    def record_write(self, size: int) -> None:
        """Count bytes that were written; call it while no lock of a file is held."""
        with self._lock:
            self._unmeasured += size
            if size == 0 or self._unmeasured < self._max_bytes / _MEASURED_FRACTION:
                return
            self._unmeasured = 0
        with suppress(OSError):  # the edit is made; the next one tries again
            self._shrink()

    def _shrink(self) -> None:
        sizes = {folder: _size_of(folder) for folder in _folders(self._folder)}
        excess = sum(sizes.values()) - self._max_bytes
        if excess <= 0:
            return
        excess += int(self._max_bytes * _FREED_FRACTION)
        timelines = {folder: self._read(folder) for folder in sizes}
        for folder, count in _oldest(timelines, excess).items():
            with suppress(OSError), file_lock(folder / "lock", timeout_seconds=0):
                self._forget(folder, count)

    def _read(self, folder: Path) -> Timeline:
        try:
            return self._files.read(folder / "index.json") or Timeline()
        except (OSError, ValueError):
            return Timeline()

    def _forget(self, folder: Path, count: int) -> None:
        """Drop the first steps of a file whose lock is held."""
        if (folder / "intent.json").exists():
            return
        index, timeline = folder / "index.json", self._read(folder)
        steps = timeline.steps[count:]
        blobs = Blobs(folder / "blobs")
        if steps:
            path = Path(json.loads(index.read_bytes())["path"])
            timeline = replace(timeline, steps=steps, cursor=max(0, timeline.cursor - count))
            self._files.write(index, timeline, path)
            blobs.keep_only(timeline.references)
            return
        index.unlink(missing_ok=True)
        blobs.keep_only(())
        with suppress(OSError):  # where a file that is open cannot be removed, it stays
            os.rmdir(folder / "blobs")
            os.unlink(folder / "lock")
            os.rmdir(folder)


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        # The folder of the journal is none of a file: its name is no digest.
        return [Path(entry) for entry in entries if len(entry.name) == 32 and entry.is_dir()]


def _size_of(folder: Path) -> int:
    total = 0
    for place in (folder, folder / "blobs"):
        with suppress(FileNotFoundError), os.scandir(place) as entries:
            total += sum(entry.stat().st_size for entry in entries if entry.is_file())
    return total


def _oldest(timelines: dict[Path, Timeline], excess: int) -> dict[Path, int]:
    """Choose how many steps of which file to forget."""
    steps = sorted(
        (step.time, number, folder)
        for folder, timeline in timelines.items()
        for number, step in enumerate(timeline.steps, 1)
    )
    counts: dict[Path, int] = defaultdict(int)
    for _, number, folder in steps[:-1]:  # the last edit of all can always be undone
        if excess <= 0:
            break
        timeline = timelines[folder]
        blobs = Blobs(folder / "blobs")
        kept = {ref for step in timeline.steps[number:] for ref in step.blobs}
        for step in timeline.steps[counts[folder] : number]:
            freed = set(step.blobs) - kept
            excess -= len(step.text) + sum(map(blobs.size, freed))
            kept |= freed
        counts[folder] = max(counts[folder], number)
        if counts[folder] == len(timeline.steps) and timeline.head is not None:
            excess -= blobs.size(timeline.head)
    return counts
