"""Execution of a rewind: each path is compared right before it is changed."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from oh_jupyter.checkpoints.disk import State, is_now, look
from oh_jupyter.checkpoints.git import TEMPORARY_SUFFIX, Git
from oh_jupyter.checkpoints.rewind import PathChange, RewindPlan
from oh_jupyter.descriptors import change_mode, held_parent
from oh_jupyter.errors import CheckpointError

CHANGED_MEANWHILE = "changed by others during the rewind"

_BLOCK_BYTES = 1 << 20


def apply(git: Git, plan: RewindPlan, on_done: Callable[[str], object]) -> RewindPlan:
    """Execute a plan.

    Args:
        git: The repository.
        plan: The plan.
        on_done: Called with each path that was changed.

    Returns:
        The changes made; what others changed during the rewind is kept.

    Raises:
        CheckpointError: Some paths cannot be changed; a second call does the rest.
    """
    work = _Rewind(git, on_done)
    with work.staging():
        work.do(plan)
    if work.errors:
        raise CheckpointError(
            f"Not everything in {str(git.work_tree)!r} could be restored: "
            f"{'; '.join(work.errors[:5])}. Fix these and rewind once more."
        )
    if not work.kept:
        return plan
    return replace(
        plan,
        changes=[change for change in plan.changes if change.path not in work.kept],
        kept=dict(sorted({**plan.kept, **work.kept}.items())),
        make_directories=[each for each in plan.make_directories if each not in work.kept],
        remove_directories=[each for each in plan.remove_directories if each not in work.kept],
    )


@dataclass
class _Rewind:
    git: Git
    on_done: Callable[[str], object]
    errors: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)

    def do(self, plan: RewindPlan) -> None:
        """Remove, then create, then write; set permission bits of directories last."""
        for change in reversed(plan.changes):
            if change.after is None:
                self._try(change.path, functools.partial(self._delete, change))
        for path in plan.remove_directories:
            self._try(path, functools.partial(self._remove_folder, path))
        for path in plan.make_directories:
            self._try(path, functools.partial(self._make_folder, path))
        self._write(plan.writes_by_blob())
        for change in plan.changes:
            if change.kind == "permissions" and change.mode is not None:
                self._try(change.path, functools.partial(self._set_mode, change))
        for path in reversed(plan.make_directories):
            if path not in self.kept:
                mode = plan.directory_modes.get(path, 0o755)
                self._try(path, functools.partial(self._finish_folder, path, mode))

    @contextlib.contextmanager
    def staging(self) -> Iterator[None]:
        """Provide an empty folder for new files."""
        self._staging = self.git.directory / "staging"
        shutil.rmtree(self._staging, ignore_errors=True)
        self._staging.mkdir(mode=0o700)
        try:
            yield
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _held(self, path: str) -> contextlib.AbstractContextManager[Path]:
        """Return a path that leads to a path of the plan, whatever becomes of its directories."""
        return held_parent(self.git.work_tree, path)

    def _try(self, path: str, call: Callable[[], object]) -> None:
        try:
            call()
        except FileExistsError:
            self.kept[path] = CHANGED_MEANWHILE
        except OSError as error:
            self.errors.append(f"{path}: {error.strerror}")
        else:
            if path not in self.kept:
                self.on_done(path)

    def _matches_plan(self, path: str, state: State | None) -> bool:
        if is_now(self.git.work_tree, path, state):
            return True
        self.kept[path] = CHANGED_MEANWHILE
        return False

    def _delete(self, change: PathChange) -> None:
        with self._held(change.path) as target:
            if self._matches_plan(change.path, change.before):
                os.unlink(target)

    def _remove_folder(self, path: str) -> None:
        try:
            with self._held(path) as target:
                os.rmdir(target)
        except OSError:
            if look(self.git.work_tree, path) is not None:
                self.kept[path] = CHANGED_MEANWHILE

    def _make_folder(self, path: str) -> None:
        if look(self.git.work_tree, os.path.dirname(path)) or not os.path.dirname(path):
            with self._held(path) as target:
                os.mkdir(target)
        else:
            self.kept[path] = CHANGED_MEANWHILE

    def _finish_folder(self, path: str, mode: int) -> None:
        with self._held(path) as target:
            change_mode(target, mode)

    def _set_mode(self, change: PathChange) -> None:
        if change.mode is not None and self._matches_plan(change.path, change.before):
            with self._held(change.path) as target:
                change_mode(target, change.mode)

    def _write(self, by_blob: dict[str, list[PathChange]]) -> None:
        if not by_blob:
            return
        with self.git.blobs(by_blob) as blobs:
            for id, size, source in blobs:
                contents = self._staging / id
                _copy(source, contents, size)
                for change in by_blob[id]:
                    self._try(change.path, functools.partial(self._install, contents, change))
                contents.unlink()

    def _install(self, contents: Path, change: PathChange) -> None:
        """Replace a path with new contents, after comparing it once more."""
        folder = os.path.dirname(change.path)
        if folder and look(self.git.work_tree, folder) is None:
            self.kept[change.path] = CHANGED_MEANWHILE
            return
        with self._held(change.path) as target:
            fresh = self._fresh(target)
            try:
                self._prepare(contents, change, target, fresh)
                if self._matches_plan(change.path, change.before):
                    os.replace(fresh, target)
            finally:
                fresh.unlink(missing_ok=True)

    def _prepare(self, contents: Path, change: PathChange, target: Path, fresh: Path) -> None:
        """Make the file or link that will replace a path."""
        assert change.after is not None
        if change.after.kind == "link":
            os.symlink(os.fsdecode(contents.read_bytes()), fresh)
            return
        with open(contents, "rb") as source, open(fresh, "xb") as file:
            change_mode(fresh, 0o600)
            shutil.copyfileobj(source, file, _BLOCK_BYTES)
            if change.before is not None:
                _copy_attributes(target, file.fileno())
        change_mode(fresh, change.after.mode)

    def _fresh(self, target: Path) -> Path:
        """Return a new path from which a file can be renamed to the target."""
        name = uuid.uuid4().hex + TEMPORARY_SUFFIX
        is_near = os.stat(self._staging).st_dev == os.stat(target.parent).st_dev
        return (self._staging if is_near else target.parent) / name


def _copy(source: IO[bytes], target: Path, size: int) -> None:
    with open(target, "wb") as file:
        while size:
            block = source.read(min(size, _BLOCK_BYTES))
            if not block:
                raise OSError(0, "contents end too early")
            file.write(block)
            size -= len(block)


def _copy_attributes(old: Path, new: int) -> None:
    """Copy the owner and the extended attributes to an open file, if permitted."""
    with contextlib.suppress(OSError, AttributeError):
        status = os.lstat(old)
        os.chown(new, status.st_uid, status.st_gid)
    with contextlib.suppress(OSError, AttributeError):
        for name in os.listxattr(old, follow_symlinks=False):
            os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False))
