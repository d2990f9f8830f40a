"""Undo and redo timeline of one file: steps with a cursor, including changes by others.

The latter are never undone; to undo an edit below one, the two are swapped first.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from oh_jupyter.editor.files.atomic_write import Attributes, write_new
from oh_jupyter.editor.history.base import Base
from oh_jupyter.editor.history.step_log import StepLog, store_steps
from oh_jupyter.editor.history.steps import Blobs, Step
from oh_jupyter.editor.text.delta import commute, invert
from oh_jupyter.errors import NoHistoryError


class Conflict(Exception):
    """Someone else changed the same place as the edit to undo."""

    def __init__(self, before: bytes | None) -> None:
        super().__init__("the changes touch each other")
        self.before = before


class Stored(NamedTuple):
    """Disk usage of the steps of a timeline."""

    size: int  # bytes
    blobs: frozenset[str]

    @classmethod
    def of(cls, steps: tuple[Step, ...], blobs: Blobs) -> Stored:
        """Look at each step."""
        size = sum([step.stored_bytes(blobs) for step in steps])
        return cls(size, frozenset(reference for step in steps for reference in step.blobs))

    def with_step(self, step: Step, blobs: Blobs) -> Stored:
        """Add one step."""
        return Stored(self.size + step.stored_bytes(blobs), self.blobs.union(step.blobs))


@dataclass(frozen=True)
class Timeline:
    """The steps of one file; methods return a new timeline."""

    head: str | None = None  # digest of the file at the cursor; None for no file
    steps: tuple[Step, ...] = field(default=())
    cursor: int = 0
    attributes: Attributes | None = None
    base: Base | None = None  # from which the content at the cursor is rebuilt
    log: StepLog | None = field(default=None, compare=False, repr=False)  # of an earlier state
    stored: Stored | None = field(default=None, compare=False, repr=False)  # None if unknown

    @classmethod
    def from_json(cls, data: dict[str, Any], folder: Path) -> Timeline:
        """Read a timeline from the parsed JSON of ``to_json``, and its steps from their log."""
        stored = data["attributes"]
        attributes = Attributes.from_json(stored) if stored else None
        log = StepLog.read(folder, data["log"]) if data["log"] else None
        steps = () if log is None else log.steps
        base = Base(*data["base"]) if data["base"] else None
        return cls(data["head"], steps, data["cursor"], attributes, base, log)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object of a timeline whose steps are stored in its log."""
        return {
            "head": self.head,
            "cursor": self.cursor,
            "base": self.base,
            "attributes": self.attributes.to_json() if self.attributes is not None else None,
            "log": self.log.to_json() if self.log is not None else None,
        }

    @property
    def references(self) -> set[str]:
        """All blobs that the timeline needs, including its base."""
        if self.stored is not None:
            needed = set(self.stored.blobs)
        else:
            needed = {reference for step in self.steps for reference in step.blobs}
        return needed | {self.base.digest} if self.base is not None else needed

    def content(self, blobs: Blobs) -> bytes | None:
        """Rebuild the content at the cursor; LookupError if it is lost."""
        if self.head is None:
            return None
        if self.base is None:
            raise LookupError(self.head)
        content = self.base.rebuild(self.steps, self.cursor, blobs)
        if blobs.digests.of(content) != self.head:
            raise LookupError(self.head)
        return content

    def can_rebuild(self, size: int) -> bool:
        """Return whether the content at the cursor, of a size in bytes, is quickly rebuilt."""
        return self.base is not None and self.base.is_near(self.cursor, size)

    def based_on(self, digest: str) -> Timeline:
        """Return a copy for which the content at the cursor is stored."""
        return replace(self, base=Base(digest, self.cursor))

    def freed_by(self, later: Timeline, other: str | None = None) -> list[str]:
        """Return the blobs of this timeline, and another, that a later one does not need."""
        dropped = set() if other is None else {other}
        if later.steps[: len(self.steps)] != self.steps:
            remaining = set(map(id, later.steps))
            dropped.update(
                ref for step in self.steps if id(step) not in remaining for ref in step.blobs
            )
        if self.base is not None and self.base != later.base:
            dropped.add(self.base.digest)
        needed = later.references if dropped else ()
        return [reference for reference in dropped if reference not in needed]

    def record(self, step: Step, head: str | None, blobs: Blobs) -> Timeline:
        """Add a step, and drop the undone ones."""
        steps = (*self.steps[: self.cursor], step)
        stored = None
        if self.stored is not None and self.cursor == len(self.steps):
            stored = self.stored.with_step(step, blobs)
        base = self.base if self.base is not None and self.base.position <= self.cursor else None
        return Timeline(head, steps, len(steps), base=base, log=self.log, stored=stored)

    def _with(self, head: str | None, steps: tuple[Step, ...], cursor: int) -> Timeline:
        if steps == self.steps:
            return replace(self, head=head, cursor=cursor)
        base = self.base
        if base is not None and steps[: base.position] != self.steps[: base.position]:
            base = None  # other steps lead there
        return replace(self, head=head, steps=steps, cursor=cursor, base=base, stored=None)

    def without_first(self, count: int) -> Timeline:
        """Drop the oldest steps, and the base unless the rest leads from it to the cursor."""
        base = self.base
        if base is not None:
            is_left = min(base.position, self.cursor) >= count
            base = Base(base.digest, base.position - count) if is_left else None
        cursor = max(0, self.cursor - count)
        return replace(self, steps=self.steps[count:], cursor=cursor, base=base, stored=None)

    def sync(self, current: bytes | None, head: str | None, blobs: Blobs, time: float) -> Timeline:
        """Add changes by others; return the same timeline if there are none."""
        if head == self.head:
            return self
        if not self.steps:
            return replace(self._with(head, (), 0), attributes=None)
        try:
            known = self.content(blobs)
            done, known = self._without_external_top(known, blobs)
        except (LookupError, ValueError):
            # The previous content is lost, so the steps are unusable.
            return replace(self._with(head, (), 0), attributes=None)
        if known == current:
            steps = (*done, *self.steps[self.cursor :])
            return self._with(head, steps, len(done))
        external = Step.between(
            known, current, blobs, command="changed outside", time=time, external=True
        )
        undone = _rebase(self.steps[self.cursor :], external, blobs)
        steps = (*done, external, *undone)
        return self._with(head, steps, len(done) + 1)

    def _without_external_top(
        self, content: bytes | None, blobs: Blobs
    ) -> tuple[tuple[Step, ...], bytes | None]:
        """Remove an external change at the cursor, to merge it with the new one."""
        done = self.steps[: self.cursor]
        if done and done[-1].external and len(done) == len(self.steps):
            return done[:-1], done[-1].undo(content, blobs)
        return done, content

    def undo(self, current: bytes | None, blobs: Blobs) -> tuple[Timeline, bytes | None]:
        """Undo the last edit; return the timeline and the content, None to remove the file."""
        done, undone = self.steps[: self.cursor], self.steps[self.cursor :]
        if done and done[-1].external and not done[-1].exists:
            # Somebody deleted the file, and undo restores it.
            content = done[-1].undo(current, blobs)
            return self._moved(content, (*done[:-1], *undone), len(done) - 1, blobs), content
        done = _merge_external(done, current, blobs)
        if done and done[-1].external:
            done = _edit_on_top(done, current, blobs)
        if not done:
            raise NoHistoryError
        content = done[-1].undo(current, blobs)
        return self._moved(content, (*done, *undone), len(done) - 1, blobs), content

    def redo(self, current: bytes | None, blobs: Blobs) -> tuple[Timeline, bytes | None]:
        """Redo the last undone edit; return the timeline and the content."""
        if self.cursor == len(self.steps):
            raise NoHistoryError
        content = self.steps[self.cursor].redo(current, blobs)
        return self._moved(content, self.steps, self.cursor + 1, blobs), content

    def _moved(
        self, content: bytes | None, steps: tuple[Step, ...], cursor: int, blobs: Blobs
    ) -> Timeline:
        return self._with(blobs.digests.of(content), steps, cursor)

    @property
    def last(self) -> Step | None:
        """The step that ``undo`` would undo."""
        done = self.steps[: self.cursor]
        if done and done[-1].external and not done[-1].exists:
            return done[-1]
        return next((step for step in reversed(done) if not step.external), None)

    @property
    def next(self) -> Step | None:
        """The step that ``redo`` would redo."""
        return self.steps[self.cursor] if self.cursor < len(self.steps) else None

    def prune(self, blobs: Blobs, max_steps: int, max_bytes: int) -> Timeline:
        """Drop the oldest steps that exceed the limits; keep at least the newest."""
        stored = self.stored or Stored.of(self.steps, blobs)
        if len(self.steps) <= max_steps and stored.size <= max_bytes:
            return self if stored is self.stored else replace(self, stored=stored)
        edits, size, keep = 0, 0, 0
        counted: set[str] = set()
        for step in reversed(self.steps):
            edits += not step.external
            sizes = step.sizes(blobs)
            size += step.line_bytes + sum(sizes[blob] for blob in sizes.keys() - counted)
            counted |= sizes.keys()
            if keep and (edits > max_steps or size > max_bytes):
                break
            keep += 1
        return self.without_first(len(self.steps) - keep)


def _merge_external(
    done: tuple[Step, ...], current: bytes | None, blobs: Blobs
) -> tuple[Step, ...]:
    """Merge the external changes at the end into one."""
    first = len(done)
    before = current
    while first and done[first - 1].external:
        first -= 1
        before = done[first].undo(before, blobs)
    if len(done) - first < 2:
        return done
    last = done[-1]
    if before == current:
        return done[:first]
    merged = Step.between(
        before, current, blobs, command=last.command, time=last.time, external=True
    )
    return (*done[:first], merged)


def _edit_on_top(done: tuple[Step, ...], current: bytes | None, blobs: Blobs) -> tuple[Step, ...]:
    """Swap the last edit with the external change after it."""
    *earlier, external = done
    if not earlier:
        raise NoHistoryError
    edit = earlier.pop()
    swapped = commute(edit.delta(blobs), external.delta(blobs))
    if swapped is None or not (edit.existed and external.existed and external.exists):
        raise Conflict(external.undo(current, blobs))
    return (*earlier, external.with_delta(swapped[0], blobs), edit.with_delta(swapped[1], blobs))


def _rebase(undone: tuple[Step, ...], external: Step, blobs: Blobs) -> list[Step]:
    """Rebase undone steps onto an external change, until one touches it."""
    rebased: list[Step] = []
    back = invert(external.delta(blobs))
    for step in undone:
        # Both changes start from the same content: undoing the external one first makes a
        # sequence of two, which can be swapped.
        swapped = commute(back, step.delta(blobs))
        if swapped is None or not (step.existed and external.existed and external.exists):
            break
        rebased.append(step.with_delta(swapped[0], blobs))
        back = swapped[1]
    return rebased


_MAX_CACHED = 16  # timelines in memory

_START = b'{"token": "'
_TOKEN_CHARS = 16
_MAX_HEAD_BYTES = 32 * 1024  # two paths of maximum length, escaped
_HEAD = re.compile(
    rb'\{"token": "\w+", "version": 2, "path": ("(?:[^"\\]|\\.)*")'
    rb'.*?, "head": (null|"\w+")',
    re.DOTALL,
)


class TimelineFiles:
    """Reader and writer of timelines, with a cache by the random token that starts each file."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Timeline] = OrderedDict()
        self._lock = Lock()

    def read(self, file: Path) -> Timeline | None:
        """Read a timeline; None without a file, ValueError if it is damaged."""
        try:
            stream = open(file, "rb", buffering=0)  # noqa: SIM115
        except FileNotFoundError:
            return None
        with stream:
            start = stream.read(len(_START) + _TOKEN_CHARS)
            token = start[len(_START) :] if start.startswith(_START) else b""
            with self._lock:
                timeline = self._known.get(token)
            if timeline is not None:
                return timeline
            try:
                timeline = Timeline.from_json(json.loads(start + stream.readall()), file.parent)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{file} does not contain a timeline: {error!r}") from None
        self._remember(token, timeline)
        return timeline

    def head(self, file: Path) -> tuple[str, str | None] | None:
        """Read path and head of a timeline from the start of its file; None if unreadable."""
        with suppress(OSError, ValueError), open(file, "rb", buffering=0) as stream:
            match = _HEAD.match(stream.read(_MAX_HEAD_BYTES))
            if match is not None:
                return json.loads(match[1]), json.loads(match[2])
        return None

    def write(
        self,
        file: Path,
        timeline: Timeline,
        path: Path,
        attributes: Attributes | None = None,
        *,
        is_new: bool = False,
        **more: str | None,
    ) -> tuple[Timeline, int]:
        """Write a timeline atomically; return it with its log, and the number of bytes.

        ``is_new`` says that it replaces none: a part of it is no JSON, which ``read`` rejects.
        """
        log, written = store_steps(file.parent, timeline.steps, timeline.log)
        timeline = replace(timeline, log=log, attributes=attributes or timeline.attributes)
        token = os.urandom(_TOKEN_CHARS // 2).hex().encode()
        body = json.dumps({"version": 2, "path": str(path), **more, **timeline.to_json()})
        data = _START + token + b'", ' + body.encode()[1:]
        temporary = file if is_new else file.with_suffix(".tmp")
        try:
            write_new(temporary, data)
            if not is_new:
                os.replace(temporary, file)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._remember(token, timeline)
        return timeline, written + len(data)

    def _remember(self, token: bytes, timeline: Timeline) -> None:
        if not token:
            return
        with self._lock:
            self._known[token] = timeline
            while len(self._known) > _MAX_CACHED:
                self._known.popitem(last=False)
