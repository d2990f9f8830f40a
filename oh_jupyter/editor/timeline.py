"""The order of the changes to one file, and how it is walked.

A timeline is a list of steps with a cursor: steps before it are done, steps after it
are undone and can be redone. Changes by others are steps too. They are never undone;
an edit beneath one is undone by letting the two change places first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from oh_jupyter.editor.blobs import Blobs, digest_of
from oh_jupyter.editor.delta import Delta, Hunk, apply, commute, compare, invert
from oh_jupyter.errors import NoHistoryError

__all__ = ["Conflict", "Step", "Timeline"]


class Conflict(Exception):
    """Somebody else changed the very place that is to be undone.

    Attributes:
        before: The file as it was before that change; None if it was not there.
    """

    def __init__(self, before: bytes | None) -> None:
        super().__init__("the changes touch each other")
        self.before = before


@dataclass(frozen=True)
class Step:
    """One change.

    Attributes:
        command: The editor command that made it.
        time: When, in seconds since the epoch.
        hunks: Offset and references to the old and the new bytes of each hunk.
        existed: Whether the file was there before.
        exists: Whether it is there afterwards.
        foreign: Whether somebody else made it.
    """

    command: str
    time: float
    hunks: tuple[tuple[int, str, str], ...]
    existed: bool = True
    exists: bool = True
    foreign: bool = False

    @classmethod
    def between(
        cls,
        old: bytes | None,
        new: bytes | None,
        blobs: Blobs,
        *,
        command: str,
        time: float,
        foreign: bool = False,
    ) -> Step:
        """Describe what happened between two contents.

        Args:
            old: The content before; None if the file was not there.
            new: The content after; None if the file is gone.
            blobs: Where the changed bytes are kept.
            command: The editor command that made the change.
            time: When, in seconds since the epoch.
            foreign: Whether somebody else made it.

        Returns:
            The step.
        """
        delta = compare(old or b"", new or b"", lines=foreign)
        step = cls(command, time, (), old is not None, new is not None, foreign)
        return step.with_delta(delta, blobs)

    def delta(self, blobs: Blobs) -> Delta:
        """Fetch the changed bytes.

        Args:
            blobs: Where they are kept.

        Returns:
            The delta.
        """
        return [Hunk(offset, blobs.get(old), blobs.get(new)) for offset, old, new in self.hunks]

    def with_delta(self, delta: Delta, blobs: Blobs) -> Step:
        """Give the step other hunks.

        Args:
            delta: The hunks.
            blobs: Where the changed bytes are kept.

        Returns:
            A step that is otherwise the same.
        """
        hunks = tuple((h.offset, blobs.put(h.old), blobs.put(h.new)) for h in delta)
        return replace(self, hunks=hunks)

    def undo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Compute the content before.

        Args:
            content: The content after.
            blobs: Where the changed bytes are kept.

        Returns:
            The content before; None if the file was not there.
        """
        old = apply(invert(self.delta(blobs)), content or b"")
        return old if self.existed else None

    def redo(self, content: bytes | None, blobs: Blobs) -> bytes | None:
        """Compute the content after.

        Args:
            content: The content before.
            blobs: Where the changed bytes are kept.

        Returns:
            The content after; None if the file is gone.
        """
        new = apply(self.delta(blobs), content or b"")
        return new if self.exists else None

    @property
    def references(self) -> list[str]:
        """Every blob that the step needs."""
        return [reference for _, old, new in self.hunks for reference in (old, new)]


@dataclass(frozen=True)
class Timeline:
    """The steps of one file. Every method returns a new timeline.

    Attributes:
        head: Digest of the file at the cursor; None if it is not there.
        steps: The changes, the oldest first.
        cursor: How many of them are done.
    """

    head: str | None = None
    steps: tuple[Step, ...] = field(default=())
    cursor: int = 0

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Timeline:
        """Read what ``to_json`` wrote.

        Args:
            data: The JSON object.

        Returns:
            The timeline.
        """
        steps = (
            Step(**{**step, "hunks": tuple((o, old, new) for o, old, new in step["hunks"])})
            for step in data["steps"]
        )
        return cls(data["head"], tuple(steps), data["cursor"])

    def to_json(self) -> dict[str, Any]:
        """Turn it into a JSON object.

        Returns:
            The object.
        """
        steps = [dict(vars(step)) for step in self.steps]
        return {"head": self.head, "cursor": self.cursor, "steps": steps}

    @property
    def references(self) -> set[str]:
        """Every blob that the timeline needs, the content at the cursor included."""
        needed = {reference for step in self.steps for reference in step.references}
        return needed | {self.head} if self.head else needed

    def record(self, step: Step, head: str | None) -> Timeline:
        """Add a change; what was undone before it cannot be redone any more.

        Args:
            step: The change.
            head: Digest of the file after it.

        Returns:
            The new timeline.
        """
        steps = (*self.steps[: self.cursor], step)
        return Timeline(head, steps, len(steps))

    def notice(
        self, current: bytes | None, head: str | None, blobs: Blobs, time: float
    ) -> Timeline:
        """Take in what somebody else did to the file.

        Args:
            current: The file as it is now.
            head: Its digest.
            blobs: Where the contents are kept.
            time: Now, in seconds since the epoch.

        Returns:
            The new timeline; the same one if nobody did anything.
        """
        if head == self.head:
            return self
        if not self.steps:
            return Timeline(head)
        try:
            known = blobs.get(self.head) if self.head else None
            done, known = self._without_foreign_top(known, blobs)
        except (LookupError, ValueError):
            return Timeline(head)  # what it was before is lost, so the steps lead nowhere
        if known == current:
            return Timeline(head, (*done, *self.steps[self.cursor :]), len(done))
        foreign = Step.between(
            known, current, blobs, command="changed outside", time=time, foreign=True
        )
        undone = _rebase(self.steps[self.cursor :], foreign, blobs)
        return Timeline(head, (*done, foreign, *undone), len(done) + 1)

    def _without_foreign_top(
        self, content: bytes | None, blobs: Blobs
    ) -> tuple[tuple[Step, ...], bytes | None]:
        """Take off a foreign change at the cursor, to measure the whole of it anew."""
        done = self.steps[: self.cursor]
        if done and done[-1].foreign and len(done) == len(self.steps):
            return done[:-1], done[-1].undo(content, blobs)
        return done, content

    def undo(self, current: bytes | None, blobs: Blobs) -> tuple[Timeline, bytes | None]:
        """Step back over the last edit.

        Args:
            current: The file as it is now, which ``notice`` has seen.
            blobs: Where the contents are kept.

        Returns:
            The new timeline, and what the file has to become; None to remove it.

        Raises:
            NoHistoryError: There is no edit.
            Conflict: Somebody else changed the same place since.
        """
        done, undone = self.steps[: self.cursor], self.steps[self.cursor :]
        if done and done[-1].foreign and not done[-1].exists:
            # Somebody deleted the file: that is what is undone.
            content = done[-1].undo(current, blobs)
            return Timeline(digest_of(content), (*done[:-1], *undone), len(done) - 1), content
        done = _merge_foreign(done, current, blobs)
        if done and done[-1].foreign:
            done = _edit_on_top(done, current, blobs)
        if not done:
            raise NoHistoryError
        content = done[-1].undo(current, blobs)
        return Timeline(digest_of(content), (*done, *undone), len(done) - 1), content

    def redo(self, current: bytes | None, blobs: Blobs) -> tuple[Timeline, bytes | None]:
        """Step forward over the edit that was undone last.

        Args:
            current: The file as it is now, which ``notice`` has seen.
            blobs: Where the contents are kept.

        Returns:
            The new timeline, and what the file has to become; None to remove it.

        Raises:
            NoHistoryError: Nothing is undone.
        """
        if self.cursor == len(self.steps):
            raise NoHistoryError
        content = self.steps[self.cursor].redo(current, blobs)
        return Timeline(digest_of(content), self.steps, self.cursor + 1), content

    def prune(self, blobs: Blobs, max_steps: int, max_bytes: int) -> Timeline:
        """Forget the oldest steps where there are too many; the newest stays.

        Args:
            blobs: Where the contents are kept.
            max_steps: How many edits to keep.
            max_bytes: How many bytes they may take.

        Returns:
            The new timeline.
        """
        edits, size, keep = 0, 0, 0
        for step in reversed(self.steps):
            edits += not step.foreign
            size += sum(map(blobs.size, step.references))
            if keep and (edits > max_steps or size > max_bytes):
                break
            keep += 1
        dropped = len(self.steps) - keep
        return Timeline(self.head, self.steps[dropped:], max(0, self.cursor - dropped))


def _merge_foreign(done: tuple[Step, ...], current: bytes | None, blobs: Blobs) -> tuple[Step, ...]:
    """Make one of the foreign changes at the end."""
    first = len(done)
    before = current
    while first and done[first - 1].foreign:
        first -= 1
        before = done[first].undo(before, blobs)
    if len(done) - first < 2:
        return done
    last = done[-1]
    if before == current:
        return done[:first]
    merged = Step.between(
        before, current, blobs, command=last.command, time=last.time, foreign=True
    )
    return (*done[:first], merged)


def _edit_on_top(done: tuple[Step, ...], current: bytes | None, blobs: Blobs) -> tuple[Step, ...]:
    """Let the last edit and the foreign change after it change places."""
    *earlier, foreign = done
    if not earlier:
        raise NoHistoryError
    edit = earlier.pop()
    swapped = commute(edit.delta(blobs), foreign.delta(blobs))
    if swapped is None or not (edit.existed and foreign.existed and foreign.exists):
        raise Conflict(foreign.undo(current, blobs))
    return (*earlier, foreign.with_delta(swapped[0], blobs), edit.with_delta(swapped[1], blobs))


def _rebase(undone: tuple[Step, ...], foreign: Step, blobs: Blobs) -> list[Step]:
    """Carry undone steps over a foreign change, as far as they do not touch it."""
    rebased: list[Step] = []
    back = invert(foreign.delta(blobs))
    for step in undone:
        # Step and foreign change start from the same content: taking the latter back first
        # makes a sequence of them, and its two parts can change places.
        swapped = commute(back, step.delta(blobs))
        if swapped is None or not (step.existed and foreign.existed and foreign.exists):
            break
        rebased.append(step.with_delta(swapped[0], blobs))
        back = swapped[1]
    return rebased
