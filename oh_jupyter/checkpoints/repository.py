"""The repository of a workspace's checkpoints: its lock, its repair, and its errors."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from oh_jupyter.checkpoints.git import Git, GitError, joined
from oh_jupyter.checkpoints.snapshot import Limits, Snapshot, take
from oh_jupyter.errors import CheckpointError
from oh_jupyter.exclusion import exclusive
from oh_jupyter.state.location import ledger_folder

LOCK_SECONDS = 60.0

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class Repository:
    """A git repository outside of a workspace, which one caller at a time opens."""

    def __init__(
        self,
        workspace: Path,
        directory: Path,
        own_folders: Collection[str],
        on_new: Callable[[], object],
    ) -> None:
        """Name the repository.

        Args:
            workspace: Its work tree.
            directory: Its folder, which also has the lock.
            own_folders: Folders that are not part of the workspace.
            on_new: Called before a new repository is created.
        """
        self.workspace = workspace
        self.directory = directory
        self._own_folders = tuple(own_folders)
        self._on_new = on_new

    @property
    def _files(self) -> Path:
        return self.directory / "files.git"

    def exists(self) -> bool:
        """Return whether the repository was created, and not removed since."""
        return self._files.exists()

    @contextlib.contextmanager
    def opened(self) -> Iterator[Git]:
        """Open the repository alone; raise CheckpointError if it is in use or unusable."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with exclusive(self._files, LOCK_SECONDS):
                for stale in self.directory.glob("files.git/*.lock"):
                    stale.unlink()  # of a killed git: a living process would hold our lock
                if not self.exists():
                    self._on_new()
                yield Git(self._files, self.workspace, self._own_folders)
        except TimeoutError as error:
            raise CheckpointError(
                f"Another process is making a checkpoint of {str(self.workspace)!r} for over "
                f"{LOCK_SECONDS:g} s; try again when it is done."
            ) from error
        except OSError as error:
            raise self.unusable(error) from error

    def take(
        self,
        git: Git,
        limits: Limits,
        last_tree: Callable[[], str],
        *,
        known: str = "",
        forced: Collection[str] = (),
    ) -> Snapshot:
        """Save the current files, and rebuild a damaged index or repository.

        Args:
            git: The opened repository.
            limits: Maximum sizes.
            last_tree: Returns the tree from which a damaged index is rebuilt, or "".
            known: Tree whose files stay known even if ignored.
            forced: Paths to save although they are ignored or too large.

        Raises:
            CheckpointError: The repository is damaged beyond that.
        """
        try:
            return take(git, limits, known=known, forced=forced)
        except GitError as first_error:
            error = first_error
        for tree in dict.fromkeys([last_tree(), ""]):
            git.index.unlink(missing_ok=True)
            try:
                if tree:  # known files stay known even if ignored
                    git("read-tree", tree)
                return take(git, limits, known=known, forced=forced)
            except GitError as retry_error:
                error = retry_error
        raise CheckpointError(
            f"{error}. If that persists, remove {str(self.directory)!r} to start again: that "
            "deletes the checkpoints and leaves the workspace alone."
        )

    def unusable(self, error: OSError) -> CheckpointError:
        """Return the error that says what failed, and what to do."""
        reason = error.strerror or str(error)
        path = Path(os.fsdecode(error.filename or self.directory))
        if not path.is_relative_to(self.directory):
            return CheckpointError(
                f"A checkpoint of {str(self.workspace)!r} failed at {str(path)!r}: {reason}."
            )
        advice = "Free space there" if error.errno in _FULL else "Make that folder writable"
        return CheckpointError(
            f"Checkpoints of {str(self.workspace)!r} cannot be stored in "
            f"{str(self.directory)!r}: {reason}. {advice}, or set XDG_STATE_HOME to another folder."
        )


def protect(git: Git, id: int, snapshot: Snapshot) -> None:
    """Protect the tree of a checkpoint from git's garbage collection."""
    git("update-ref", f"refs/checkpoints/{id}/begin", snapshot.tree)


def protected(git: Git) -> set[int]:
    """Return the numbers of the checkpoints whose trees are protected."""
    names = git("for-each-ref", "--format=%(refname)", "refs/checkpoints/*/begin").decode()
    return {int(name.split("/")[2]) for name in names.split()}


def unprotect(git: Git, ids: Iterable[int]) -> None:
    """Leave the trees of checkpoints to git's garbage collection."""
    lines = "".join(f"delete refs/checkpoints/{id}/begin\n" for id in sorted(ids))
    git.run("update-ref", "--stdin", data=lines.encode())


def protect_contents(git: Git, ids: Iterable[str]) -> None:
    """Protect contents from git's garbage collection, in place of those protected before."""
    lines = [f"100644 blob {id}\t{id}" for id in sorted(ids)]
    tree = git("mktree", "--missing", "-z", data=joined(lines)).decode().strip()
    git("update-ref", "refs/checkpoints/contents", tree)


def default_directory(workspace: Path) -> Path:
    """Return the default directory for a workspace's checkpoints, which may not exist.

    It is beside the ledger, which numbers them: two machines with a common state directory on a
    network have ledgers of their own.
    """
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16]
    return ledger_folder() / "checkpoints" / name
