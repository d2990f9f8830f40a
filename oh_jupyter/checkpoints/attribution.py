"""Attribution of changes: which belong to a turn's agent, and which to others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from oh_jupyter.checkpoints.disk import look
from oh_jupyter.checkpoints.git import Git
from oh_jupyter.checkpoints.journal import Checkpoint
from oh_jupyter.checkpoints.snapshot import Change, Snapshot, changes, load, with_states
from oh_jupyter.checkpoints.work import Work
from oh_jupyter.moves import moved_to, moves

IsOfTurn = Callable[[Path, float], bool]
"""Returns whether a change is a turn's, given the absolute path and the time of the change."""


def end_turn(git: Git, turn: Checkpoint, now: Snapshot, is_of_turn: IsOfTurn) -> Checkpoint:
    """Return a turn that ends now, with only its own changes."""
    return _attributed(
        git, turn, now, lambda path: _is_of(git.work_tree, is_of_turn, path, turn.time)
    )


def end_unfinished_turn(
    git: Git, entry: Checkpoint, now: Snapshot, proof: tuple[Work, float] | None
) -> Checkpoint:
    """Return another process' turn with an end: only proven changes count as its own.

    The proof is the agent's work, and when its process was last alive.
    """
    # Others may have moved in directories that did not exist, with the agent's files.
    folders = load(git, entry.end or entry.begin).folders
    workspace = git.work_tree

    def is_of_turn(path: str) -> bool:
        if proof is None:
            return False
        work, last_alive = proof
        status = look(workspace, path)
        if status is not None and not _is_of(workspace, work.is_of_turn, path, entry.time):
            return False
        parents = [parent.as_posix() for parent in PurePosixPath(path).parents]
        if status is None:  # its directory has the time of the deletion
            status = next(filter(None, (look(workspace, name) for name in parents)), None)
            status = status or os.stat(workspace)
        new_folders = (look(workspace, name) for name in parents if name not in folders)
        moved = max((each.st_ctime for each in new_folders if each), default=0.0)
        if max(status.st_ctime, moved) > last_alive:
            return False
        return work.is_of_turn(workspace / path, status.st_ctime)

    ended = _attributed(git, entry, now, is_of_turn)
    return replace(ended, is_open=False, is_certain=False)


def moved_files(workspace: Path, changed: Mapping[str, Change], since: float) -> set[str]:
    """Return the old and new names of files that a person moved in Jupyter."""
    persons_moves = moves(since)
    targets = [move.target for move in persons_moves]
    moved = set()
    for path, (_, new) in changed.items():
        source = str(workspace / path)
        target = moved_to(source, persons_moves)
        if new is None and target != source:
            moved.add(path)
            targets.append(target)
    return moved | {path for path in changed if str(workspace / path) in targets}


def _is_of(workspace: Path, is_of_turn: IsOfTurn, path: str, since: float) -> bool:
    """Return whether a change is a turn's, which began at a time."""
    status = look(workspace, path)
    if status is None:  # a deletion has no known author
        return True
    target = workspace / path
    if status.st_mtime >= since and not is_of_turn(target, status.st_mtime):
        return False  # the turn changed attributes of what others wrote
    return is_of_turn(target, status.st_ctime)


def _attributed(
    git: Git, turn: Checkpoint, now: Snapshot, is_of_turn: Callable[[str], bool]
) -> Checkpoint:
    """Return the turn with an end that has only its changes, and the paths that others changed.

    These paths keep their state at the turn's last end.
    """
    base = turn.end or turn.begin
    changed = changes(git, base, now)
    moved = moved_files(git.work_tree, changed, turn.time)
    foreign = {
        path: old for path, (old, _) in changed.items() if path in moved or not is_of_turn(path)
    }
    earlier = changes(git, turn.begin, base).keys()
    others = sorted({*turn.others, *(foreign.keys() - earlier)})
    return replace(turn, end=with_states(git, now, foreign), others=others)
