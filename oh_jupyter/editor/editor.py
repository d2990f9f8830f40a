"""The file editor: one call for each command."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from oh_jupyter.editor.arguments import Arguments, prepare, prepare_edit, required
from oh_jupyter.editor.changed_files import ChangedFile, HistoryPosition, changes
from oh_jupyter.editor.engine import EditOptions, Transaction, apply, apply_together, overwrite
from oh_jupyter.editor.files.paths import check_path, check_regular, exists, parse_path
from oh_jupyter.editor.history.edit_history import (
    MAX_EDITS,
    MAX_HISTORY_BYTES,
    EditHistory,
    HistoryEntry,
)
from oh_jupyter.editor.messages import invalid
from oh_jupyter.editor.reading import view
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import EditorState, real_path
from oh_jupyter.editor.undo import diff, undo_or_redo


class FileEditor:
    """Views and edits files on behalf of a person or an agent.

    Call it with ``command=`` and ``path=``. It is safe to call from several threads, and several
    editors may work on the same files, also from other processes and workspaces. It does not
    wait for editors of other users, containers or machines; it notices what they write, except
    in the instant in which a file is replaced.

    Attributes:
        workspace: Directory used to suggest absolute paths for relative ones.
    """

    def __init__(
        self,
        workspace_root: str | os.PathLike[str] | None = None,
        max_file_size_mb: float = 10,
        history_dir: str | os.PathLike[str] | None = None,
        history_limit: int = MAX_EDITS,
        history_mb: float = MAX_HISTORY_BYTES / 1024 / 1024,
    ) -> None:
        """Create an editor; nothing is read or written yet.

        Args:
            workspace_root: The workspace; by default the working directory.
            max_file_size_mb: Maximum size of a file in MiB; of a larger text, only ranges of lines
                are shown.
            history_dir: Directory with a ledger of its own for the undo history; by default it is
                in the user's ledger.
            history_limit: Undo steps to keep for each file, at least 1.
            history_mb: Maximum size of the whole history in MiB; the oldest steps go first.

        Raises:
            EditorParameterInvalidError: A limit is not a positive number.
        """
        for name, value in (("history_limit", history_limit), ("history_mb", history_mb)):
            if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
                raise invalid(name, value, "It should be a positive number.")
        self.workspace = Path(workspace_root if workspace_root is not None else ".").absolute()
        self._state = EditorState(
            self.workspace,
            int(max_file_size_mb * 1024 * 1024),
            Path(history_dir).absolute() if history_dir is not None else None,
            int(history_limit),
            int(history_mb * 1024 * 1024),
        )

    def __call__(
        self,
        *,
        command: str,
        path: str | os.PathLike[str],
        file_text: str | None = None,
        view_range: list[int] | tuple[int, int] | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        enable_linting: bool = False,
        content: str | None = None,
        start: int = 0,
        end: int = -1,
        cell: int | str | None = None,
        edit_mode: str = "replace",
        cell_type: str | None = None,
        to: int | None = None,
        replace_all: bool = False,
        expected_replacements: int | None = None,
        dry_run: bool = False,
    ) -> EditorResult:
        """Run a command.

        Args:
            command: One of ``COMMANDS``.
            path: The absolute path of a file, or for ``view`` of a directory.
            file_text: For ``create``: the text of the file.
            view_range: For ``view``: first and last line, counted from 1; -1 is the end.
            old_str: For ``str_replace``: the text to replace; it must occur once.
            new_str: For ``str_replace`` and ``insert``: the new text.
            insert_line: For ``insert``: the line after which to insert; 0 is the start.
            enable_linting: Report the problems that an edit introduces.
            content: For ``write``: the new lines. For ``apply_patch``: SEARCH and REPLACE blocks,
                a unified diff, or a ``*** Begin Patch`` envelope; ``path`` is the file, or the
                directory that contains the files of the patch.
            start: For ``write``: the first line to replace, counted from 0.
            end: For ``write``: the line after the last to replace; -1 is the end.
            cell: In a notebook: id or position of a cell; negative positions count from the
                end. For ``str_replace`` the cell to search; for ``notebook_edit`` the cell to
                change, or with ``insert`` the one before the new cell (None: the top).
            edit_mode: For ``notebook_edit``: replace, insert, delete or move.
            cell_type: For ``notebook_edit``: code, markdown or raw.
            to: For ``notebook_edit`` with move: the new position of the cell.
            replace_all: For ``str_replace``: replace every occurrence.
            expected_replacements: For ``str_replace``: replace every occurrence, if there are
                exactly this many.
            dry_run: Write nothing; the result shows what would change.

        Returns:
            The result of the command.

        Raises:
            EditorError: The command was rejected; nothing was changed.
        """
        target = parse_path(path, self.workspace)
        arguments = Arguments(
            file_text=file_text,
            old_str=old_str,
            new_str=new_str,
            insert_line=insert_line,
            content=content,
            start=start,
            end=end,
            cell=cell,
            edit_mode=edit_mode,
            cell_type=cell_type,
            to=to,
            replace_all=replace_all,
            expected_replacements=expected_replacements,
        )
        options = EditOptions(enable_linting, dry_run)
        self.finish_interrupted(target)
        if command == "apply_patch":
            from oh_jupyter.editor.patch_files import patch_files

            text = required(command, "content", content)
            return patch_files(self._state, target, text, options)
        restorable = (
            command in ("undo_edit", "redo_edit")
            and not exists(target)
            and self.history_store.has(target)
        )
        check_path(command, target, restorable=restorable)
        if command == "view":
            return self._view(target, view_range)
        if command in ("undo_edit", "redo_edit"):
            return self._undo_or_redo(target, command, dry_run)
        return apply(self._state, prepare(command, target, arguments), options)

    def edit_cell(
        self,
        path: str | os.PathLike[str],
        cell: int | str | None,
        source: str | None = None,
        *,
        mode: str = "replace",
        cell_type: str | None = None,
        to: int | None = None,
    ) -> EditorResult:
        """Change one cell of a notebook, like the command ``notebook_edit``.

        Args:
            path: The absolute path of the notebook.
            cell: Id or position of the cell; negative positions count from the end. With
                ``insert`` the one before the new cell; None is the top of the notebook.
            source: For ``replace`` and ``insert``: the source.
            mode: replace, insert, delete or move.
            cell_type: code, markdown or raw; by default the current type, or code.
            to: For ``move``: the new position of the cell.

        Returns:
            The result of the command.

        Raises:
            EditorError: The command was rejected; nothing was changed.
        """
        return self(
            command="notebook_edit",
            path=path,
            cell=cell,
            new_str=source,
            edit_mode=mode,
            cell_type=cell_type,
            to=to,
        )

    def edit_many(
        self,
        edits: Iterable[Mapping[str, Any]],
        *,
        enable_linting: bool = False,
        dry_run: bool = False,
    ) -> EditorResult:
        """Apply several commands as one edit: all of them, or none.

        Each command sees the files as the previous commands leave them. They are written once
        all have succeeded; a crash leaves the old files or the new ones. One undo reverts them
        all.

        Args:
            edits: The arguments of each: ``command`` (create, str_replace, insert, write or
                notebook_edit), ``path``, and those of that command.
            enable_linting: Report the problems that the edits introduce.
            dry_run: Write nothing; the result shows what would change.

        Returns:
            The result; ``files`` has a result for each changed file.

        Raises:
            EditorError: One command, named in the message, was rejected; nothing was changed.
        """
        items = [edits] if isinstance(edits, str | bytes | Mapping) else list(edits)
        if not items or not all(isinstance(edit, Mapping) for edit in items) or items == [edits]:
            hint = "It should be a list of dicts, each with the arguments of one command."
            raise invalid("edits", edits, hint)
        commands = [prepare_edit(edit, self.workspace) for edit in items]
        return apply_together(self._state, commands, EditOptions(enable_linting, dry_run))

    def transaction(self, *, enable_linting: bool = False) -> Transaction:
        """Collect commands in a ``with`` block, and apply them at its end like ``edit_many``.

        Args:
            enable_linting: Report the problems that the edits introduce.

        Returns:
            An object to call in the block in place of the editor.
        """
        return Transaction(self._state, EditOptions(enable_linting))

    @property
    def history_store(self) -> EditHistory:
        """The store of the undo steps."""
        return self._state.history

    def finish_interrupted(self, path: Path) -> None:
        """Finish edits of a file whose process died; for callers that read the file themselves.

        Args:
            path: The absolute path.

        Raises:
            EditorError: A file cannot be written.
        """
        self._state.finish_interrupted(path)

    def remember_shown(self, path: Path, content: bytes) -> None:
        """Count a content as shown; for callers that read and show the file themselves.

        Args:
            path: The absolute path.
            content: The bytes of the whole file.
        """
        self._state.last_read.remember(real_path(path), content)

    def history(self, path: str | os.PathLike[str]) -> list[HistoryEntry]:
        """List the steps of a file that can be undone or redone.

        Args:
            path: The absolute path; the file need not exist any more.

        Returns:
            The steps, oldest first.
        """
        target = parse_path(path, self.workspace)
        self.finish_interrupted(target)
        return self.history_store.entries(target) if self.history_store.has(target) else []

    def diff(self, path: str | os.PathLike[str], steps: int = 1) -> str:
        """Compare a file with its content some edits ago.

        Args:
            path: The absolute path.
            steps: How many edits to go back.

        Returns:
            A unified diff; "" if there is no difference.

        Raises:
            NoHistoryError: The history has fewer edits.
            FileChangedError: Someone else has changed the same lines since.
        """
        return diff(self.history_store, parse_path(path, self.workspace), steps)

    def position(self) -> HistoryPosition:
        """Return the current position in the edit history, for `changes`.

        Returns:
            The position: plain data, which is also valid in other processes.
        """
        self._state.finish_interrupted()
        return HistoryPosition(time.time(), self.history_store.heads())

    def changes(self, since: HistoryPosition | None = None) -> list[ChangedFile]:
        """List the files that were edited and differ from their state at a position.

        Changes by others to these files are included and marked. Files that only others changed
        are not in the history, and are left out.

        Args:
            since: The position to compare with; by default the start of the history.

        Returns:
            One entry for each file, sorted by path.

        Raises:
            EditorError: A history or a file cannot be read.
        """
        self._state.finish_interrupted()
        return changes(self.history_store, since)

    def overwrite(
        self, path: Path, compute: Callable[[bytes | None], bytes], mode: int | None = None
    ) -> None:
        """Write a whole file as a step that can be undone.

        Nothing is checked: this is for callers with rules of their own.

        Args:
            path: The absolute path.
            compute: Takes the old content (None for no file) and returns the new one.
            mode: Permissions of a new file; by default those of the umask.

        Raises:
            OSError: The file cannot be written.
            FileChangedError: Someone else keeps writing it.
        """
        overwrite(self._state, path, compute, mode)

    def _view(self, path: Path, view_range: list[int] | tuple[int, int] | None) -> EditorResult:
        result, shown = view(path, view_range, self._state.max_file_bytes)
        if shown is not None:
            self._state.last_read.remember(real_path(path), shown)
        return result

    def _undo_or_redo(self, path: Path, command: str, dry_run: bool) -> EditorResult:
        with suppress(OSError):  # undo may restore a missing file
            check_regular(path)
        result, contents = undo_or_redo(self.history_store, path, command, dry_run=dry_run)
        self._state.last_read.update(contents)
        return result
