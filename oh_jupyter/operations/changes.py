"""Operations on the changes of files, and on checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from oh_jupyter.operations.declaration import Operation, bounded

ChangeKind = Literal["created", "changed", "deleted", "moved"]
"""Type of a change of a file or cell."""


@dataclass(frozen=True)
class FileChange:
    """A file that differs from its state at the start of the session.

    Attributes:
        path: Its absolute path.
        kind: Type of the change.
        moved_from: Previous absolute path; null if it was not moved.
        added: Number of added lines.
        removed: Number of removed lines.
        binary_size: Size of a binary file in bytes, whose lines are not counted; else null.
        runs_when: What a person does that runs the change, such as "you run make"; null if nothing.
        by_others: Whether others changed it between the edits.
        undoable: Whether the change can be undone.
        redoable: Whether an undone change can be done again.
    """

    path: str
    kind: ChangeKind
    moved_from: str | None
    added: int
    removed: int
    binary_size: int | None
    runs_when: str | None
    by_others: bool
    undoable: bool
    redoable: bool


@dataclass(frozen=True)
class FileChanges:
    """The changes of a session.

    Attributes:
        workspace: Absolute path of the workspace.
        problem: Why changes by commands are unknown; "" if they are known.
        files: The changed files.
    """

    workspace: str
    problem: str
    files: list[FileChange]


@dataclass(frozen=True)
class CellChange:
    """A change of one cell of a notebook.

    Attributes:
        kind: Type of the change; the source of a moved cell may differ, too.
        id: The cell's id; null in notebooks older than format 4.5.
        cell_type: Current (or last) type: code, markdown or raw.
        old_index: Previous position, counted from 0; null for a new cell.
        new_index: Current position, counted from 0; null for a deleted cell.
        old_source: Previous source; "" for a new cell.
        new_source: Current source; "" for a deleted cell.
        old_outputs: Previous outputs as text.
        new_outputs: Current outputs as text.
        old_metadata: Previous metadata as JSON; "" without metadata.
        new_metadata: Current metadata as JSON; "" without metadata.
    """

    kind: ChangeKind
    id: str | None
    cell_type: str
    old_index: int | None
    new_index: int | None
    old_source: str
    new_source: str
    old_outputs: str
    new_outputs: str
    old_metadata: str
    new_metadata: str


@dataclass(frozen=True)
class FileContents:
    """Both versions of a changed file.

    Attributes:
        old: The text before; null for a notebook, or where there is a reason.
        new: The text after.
        cells: The changed cells of a notebook.
        language: Language of these cells; "" if it is unknown.
        reason: Why there are no contents; null if there are.
    """

    old: str | None = None
    new: str | None = None
    cells: list[CellChange] = field(default_factory=list)
    language: str = ""
    reason: Literal["binary", "too_long", "forgotten"] | None = None


@dataclass(frozen=True)
class UndoneChange:
    """The result of an undo or redo.

    Attributes:
        kept: Why the file was left unchanged because of others; "" if it was not.
        failure: Why nothing was done; "" if something was.
    """

    kept: str = ""
    failure: str = ""


@dataclass(frozen=True)
class Decision:
    """A decision of the person on an agent's changes in a tab.

    Attributes:
        text: A sentence.
        diff: What an undo changed in the file; "" for changes that were kept.
    """

    text: str
    diff: str


@dataclass(frozen=True)
class DecisionList:
    """The decisions of a person.

    Attributes:
        decisions: All of them, oldest first.
    """

    decisions: list[Decision]


@dataclass(frozen=True)
class Checkpoint:
    """A moment to which a rewind can return.

    Attributes:
        id: Number within the workspace, counted from 1.
        time: When it was made, in seconds since the epoch.
        kind: A turn of an agent, a mark of a person, or a rewind.
        label: The prompt or first Action of a turn, or the label of a mark.
        who: Who acted in the turn, such as the name of an agent.
        ended: Whether it is a turn or rewind that has ended.
        files: Files that the turn changed.
        cells: Number of cells that the turn ran.
        variables: Names of the variables that the turn changed.
    """

    id: int
    time: float
    kind: Literal["turn", "mark", "rewind"]
    label: str
    who: str
    ended: bool
    files: list[str]
    cells: int
    variables: list[str]


@dataclass(frozen=True)
class CheckpointList:
    """The checkpoints of a workspace.

    Attributes:
        checkpoints: All of them, oldest first.
        problem: Why there are no new ones; "" if there are.
    """

    checkpoints: list[Checkpoint]
    problem: str


@dataclass(frozen=True)
class PathChange:
    """A change of a path by a rewind.

    Attributes:
        path: The path, relative to the workspace.
        kind: Type of the change.
    """

    path: str
    kind: Literal["create", "restore", "merge", "delete", "permissions"]


@dataclass(frozen=True)
class VariableChange:
    """One variable in a rewind.

    Attributes:
        name: Its name.
        outcome: What happens to it: ``rebound`` is another object with the earlier content, and
            ``yours`` was changed since by others, so it stays.
        type: Name of its type.
        size: Size in bytes, without the objects that it refers to.
        reason: Why it stays, or which part of it stays; "" if nothing does.
    """

    name: str
    outcome: Literal["restored", "rebound", "removed", "unchanged", "yours", "not kept"]
    type: str
    size: int
    reason: str


@dataclass(frozen=True)
class RewindPlan:
    """The changes of a rewind, planned or done.

    Attributes:
        changes: One for each path, in the order of paths.
        kept: Paths that stay, because others changed them or their contents are not stored, with
            the reason.
        make_directories: Directories to make.
        remove_directories: Directories to remove, which are empty by then.
        notes: Other things that were not restored, each a sentence.
        directory_modes: Permission bits of the directories to make.
        variables: One for each variable that the turns or the rewind touched, by name.
    """

    changes: list[PathChange]
    kept: dict[str, str]
    make_directories: list[str]
    remove_directories: list[str]
    notes: list[str]
    directory_modes: dict[str, int]
    variables: list[VariableChange]


@dataclass(frozen=True)
class OwnRewindPlan:
    """A rewind of an agent's own turns.

    Attributes:
        id: The first turn.
        text: The changes, a line each.
    """

    id: int
    text: str


@dataclass(frozen=True)
class Changes(Operation[FileChanges], scope="anyone"):
    """List the files that changed in this session, without their contents."""


@dataclass(frozen=True)
class Change(Operation[FileContents], scope="anyone"):
    """Return both texts of a changed file, or the cells of a notebook.

    Attributes:
        path: The file, as ``changes`` lists it.
    """

    path: str


@dataclass(frozen=True)
class RunsWhen(Operation[str | None], scope="person"):
    """Return what a person does that runs a changed file, or null.

    Attributes:
        path: The file.
        before: Its text before the change.
    """

    path: str
    before: str


@dataclass(frozen=True)
class UndoChange(Operation[UndoneChange], scope="person"):
    """Undo or redo the last edit of a file, or else what commands changed in this session.

    Attributes:
        path: The file.
        redo: Redo what was undone.
        everything: Also overwrite later changes of others, which otherwise stay: then the reply
            gives the reason.
    """

    path: str
    redo: bool = False
    everything: bool = False


@dataclass(frozen=True)
class Decisions(Operation[DecisionList], scope="anyone"):
    """List what the person undid and kept of the agents' changes in tabs: the last 100."""


@dataclass(frozen=True)
class RecordKeep(Operation[None], scope="person"):
    """Note for agents that a person kept changes of a file in a tab.

    Attributes:
        name: Name of the file.
        count: Number of changes.
    """

    name: str
    count: int = bounded(minimum=1)


@dataclass(frozen=True)
class Checkpoints(Operation[CheckpointList], scope="anyone"):
    """List the checkpoints, oldest first, and the reason if there are no new ones."""


@dataclass(frozen=True)
class MarkCheckpoint(Operation[Checkpoint], scope="anyone"):
    """Set a checkpoint to which a rewind can return.

    Attributes:
        label: Its name in lists.
    """

    label: str


@dataclass(frozen=True)
class Rewind(Operation[RewindPlan], scope="anyone"):
    """Undo the turns since a checkpoint, or report what that would change.

    A rewind is a checkpoint itself and can be undone.

    Attributes:
        id: The checkpoint; null for the last turn.
        path: The only file to restore, absolute or relative to the workspace; null for all.
        files: Restore files; by default true unless there is a path.
        variables: Restore variables; by default true unless there is a path. Those that others
            changed since stay, unless a person asks for ``everything``.
        everything: Also overwrite what others changed since, which otherwise stays.
        preview: Only report what would change.
        source: Who rewinds; an agent's request is always an agent's.
    """

    id: int | None = None
    path: str | None = None
    files: bool | None = None
    variables: bool | None = None
    everything: bool = False
    preview: bool = False
    source: Literal["agent", "user"] = "agent"


@dataclass(frozen=True)
class RewindChange(Operation[FileContents], scope="person"):
    """Return both texts of a file that a rewind would change, or the cells of a notebook.

    Attributes:
        path: The file, relative to the workspace.
        id: The checkpoint; null for the last turn.
        everything: Also show what others changed since.
    """

    path: str
    id: int | None = None
    everything: bool = False


@dataclass(frozen=True)
class OwnTurns(Operation[list[Checkpoint]], scope="agent", names_actor=True):
    """List the turns of the requesting agent that are not undone, oldest first."""


@dataclass(frozen=True)
class OwnCheckpoint(Operation[int], scope="agent", names_actor=True):
    """Start a new turn of the requesting agent, to whose beginning it can return; return its id.

    Attributes:
        label: Its name in lists.
    """

    label: str


@dataclass(frozen=True)
class OwnRewind(Operation[OwnRewindPlan], scope="agent", names_actor=True):
    """Undo the requesting agent's turns since one of them, or redo what its rewind undid.

    Turns of others in other kernels stay.

    Attributes:
        id: The first turn; null for the last one.
        preview: Only report what would change.
    """

    id: int | None = None
    preview: bool = False
