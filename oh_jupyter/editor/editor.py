"""The file editor: one call for each command, exact in what it says and does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from oh_jupyter.editor.arguments import EDIT_COMMANDS, Arguments, prepare
from oh_jupyter.editor.changes import ChangedFile, HistoryPosition, changes, position, undo_to
from oh_jupyter.editor.engine import Transaction, apply, apply_all, check_edits, combine, overwrite
from oh_jupyter.editor.files.paths import check_path, check_regular, exists, parse_path
from oh_jupyter.editor.history.edit_history import (
    MAX_HISTORY_BYTES,
    MAX_STEPS,
    EditHistory,
    HistoryEntry,
)
from oh_jupyter.editor.messages import invalid
from oh_jupyter.editor.reading import view
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.state import EditorState, real_path
from oh_jupyter.editor.text.edits import Command, NewFile
from oh_jupyter.editor.undo import diff, undo_or_redo
from oh_jupyter.errors import EditorError


class FileEditor:
    """Views and edits files on behalf of a person or an agent.

    Call it with ``command=`` and ``path=``. It may be called from several threads, and
    several editors, also in other processes and of other workspaces, may work on the same
    files. Those of other users, containers or machines are not waited for; what they write
    is noticed, but for the moment in which a file is replaced.

    Attributes:
        workspace: Where relative paths are looked for, to suggest absolute ones.
    """

    def __init__(
        self,
        workspace_root: str | os.PathLike[str] | None = None,
        max_file_size_mb: float = 10,
        history_dir: str | os.PathLike[str] | None = None,
        history_limit: int = MAX_STEPS,
        history_mb: float = MAX_HISTORY_BYTES / 1024 / 1024,
    ) -> None:
        """Make an editor; nothing is read or written yet.

        Args:
            workspace_root: The workspace; by default the working directory.
            max_file_size_mb: Files above this size, in MiB, are refused.
            history_dir: Where the undo history is kept; by default a folder for this
                workspace below ``$XDG_STATE_HOME/oh_jupyter/history``.
            history_limit: Undo steps to keep of each file, at least 1.
            history_mb: Size in MiB of the whole history; above it the oldest steps go first.

        Raises:
            EditorParameterInvalidError: One of the limits is no positive number.
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
        """Carry out a command.

        Args:
            command: One of ``COMMANDS``.
            path: The absolute path of a file, or for ``view`` of a directory.
            file_text: For ``create``: the text of the file.
            view_range: For ``view``: first and last line, counted from 1; -1 is the end.
            old_str: For ``str_replace``: the text to replace; it must be there once.
            new_str: For ``str_replace`` and ``insert``: the new text.
            insert_line: For ``insert``: the line after which to insert; 0 is the start.
            enable_linting: Report what an edit broke.
            content: For ``write``: the new lines. For ``apply_patch``: SEARCH and REPLACE
                blocks, a unified diff, or a ``*** Begin Patch`` envelope; ``path`` is the
                file, or the directory in which the files of the patch are.
            start: For ``write``: the first line to replace, counted from 0.
            end: For ``write``: the line after the last to replace; -1 is the end.
            cell: In a notebook: id or position of a cell, negative from the end. For
                ``str_replace`` the cell to look in; for ``notebook_edit`` the cell to
                change, or with ``insert`` the one before the new cell (None: the top).
            edit_mode: For ``notebook_edit``: replace, insert, delete or move.
            cell_type: For ``notebook_edit``: code, markdown or raw.
            to: For ``notebook_edit`` with move: the position of the cell afterwards.
            replace_all: For ``str_replace``: replace the text wherever it is.
            expected_replacements: For ``str_replace``: replace the text wherever it is,
                if it is there so many times.
            dry_run: Write nothing; the result tells what would be.

        Returns:
            What was done.

        Raises:
            EditorError: It was refused; nothing was changed.
        """
        given = Arguments(
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
        target = parse_path(path, self.workspace)
        given.check()
        self.finish_interrupted(target)
        if command == "apply_patch":
            text = given.required(command, "content", content)
            return self._patch(target, text, enable_linting, dry_run)
        restorable = command in ("undo_edit", "redo_edit") and self.history_store.has(target)
        check_path(command, target, restorable=restorable)
        if command == "view":
            return self._view(target, view_range)
        if command in ("undo_edit", "redo_edit"):
            return self._undo_or_redo(target, command, dry_run)
        edit = prepare(command, target, given)
        return apply(self._state, edit, linting=enable_linting, dry_run=dry_run)

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
        """Change one cell of a notebook; the same as the command ``notebook_edit``.

        Args:
            path: The absolute path of the notebook.
            cell: Id or position of the cell, negative from the end. With ``insert`` the
                one before the new cell; None is the top of the notebook.
            source: For ``replace`` and ``insert``: the source.
            mode: replace, insert, delete or move.
            cell_type: code, markdown or raw; by default the old type, or code.
            to: For ``move``: the position of the cell afterwards.

        Returns:
            What was done.

        Raises:
            EditorError: It was refused; nothing was changed.
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
        """Carry out several commands as one edit: all of them, or none.

        They are carried out in their order, each on the files as those before it leave
        them, and written when all are found to be possible; a crash in between leaves
        the old files or the new ones. One undo takes back all of it.

        Args:
            edits: The arguments of each: ``command`` (create, str_replace, insert, write or
                notebook_edit), ``path``, and what that command needs.
            enable_linting: Report what the edits broke.
            dry_run: Write nothing; the result tells what would be.

        Returns:
            What was done; ``files`` has a result for each file that was changed.

        Raises:
            EditorError: One of them was refused, which the message names, and so all
                were; nothing was changed.
        """
        commands = [self._prepare(edit) for edit in check_edits(edits)]
        paths = [command.path for command in commands]
        return apply_all(
            self._state,
            paths,
            combine(commands),
            command="edit_many",
            path=paths[0],
            linting=enable_linting,
            dry_run=dry_run,
        )

    def transaction(self, *, enable_linting: bool = False) -> Transaction:
        """Collect commands in a ``with`` block, and carry them out at its end like ``edit_many``.

        Args:
            enable_linting: Report what the edits broke.

        Returns:
            What to call in the block in the place of the editor.
        """

        def make(edits: list[Mapping[str, Any]]) -> EditorResult:
            return self.edit_many(edits, enable_linting=enable_linting)

        return Transaction(Stage(self._state), self._prepare, make)

    def _prepare(self, edit: Mapping[str, Any]) -> Command | NewFile:
        arguments = dict(edit)
        command, path = arguments.pop("command", None), arguments.pop("path", None)
        if not isinstance(command, str) or path is None:
            raise invalid("edits", edit, "Each edit needs a `command` and a `path`.")
        try:
            given = Arguments(**arguments)
        except TypeError:
            names = ", ".join(field.name for field in fields(Arguments))
            raise invalid(
                "edits", edit, f"Besides command and path it may have: {names}."
            ) from None
        given.check()
        if command not in EDIT_COMMANDS:
            raise EditorError(
                f"Unrecognized command {command}. The commands that can be part of one edit are: "
                + ", ".join(EDIT_COMMANDS)
            )
        return prepare(command, parse_path(path, self.workspace), given)

    @property
    def history_store(self) -> EditHistory:
        """Where the undo steps are kept."""
        return self._state.history

    def finish_interrupted(self, path: Path) -> None:
        """Finish the edits of a file whose process died; for callers that read it by themselves.

        Args:
            path: The absolute path.

        Raises:
            EditorError: A file cannot be written.
        """
        self._state.finish_interrupted(path)

    def history(self, path: str | os.PathLike[str]) -> list[HistoryEntry]:
        """List the steps of a file that can be undone or redone.

        Args:
            path: The absolute path; the file need not exist any more.

        Returns:
            The steps, the oldest first.
        """
        target = parse_path(path, self.workspace)
        self.finish_interrupted(target)
        return self.history_store.entries(target) if self.history_store.has(target) else []

    def diff(self, path: str | os.PathLike[str], steps: int = 1) -> str:
        """Compare a file with what it was some edits ago.

        Args:
            path: The absolute path.
            steps: How many edits to look back.

        Returns:
            A unified diff; "" if nothing differs.

        Raises:
            NoHistoryError: There are not as many edits.
            FileChangedError: Somebody else changed the same place since.
        """
        return diff(self.history_store, parse_path(path, self.workspace), steps)

    def position(self) -> HistoryPosition:
        """Note where the edit history is now, for `changes` and `undo_to`.

        It costs a look at the start of one file for each file that was ever edited here.

        Returns:
            The position, which is plain data and holds in other processes, too.
        """
        self._state.finish_interrupted()
        return position(self.history_store)

    def changes(self, since: HistoryPosition | None = None) -> list[ChangedFile]:
        """List the files that were edited and are not what they were.

        What others changed in these files meanwhile is part of the difference, and said; files
        that only others changed are not known to the history, and are left out.

        Args:
            since: The position to compare with; by default as far as the history reaches back.

        Returns:
            One entry for each file, by path: with old and new bytes and texts, a diff, the numbers
            of lines added and removed, and for a notebook what became of its cells.

        Raises:
            EditorError: A history or a file cannot be read.
        """
        self._state.finish_interrupted()
        return changes(self.history_store, since)

    def undo_to(
        self,
        position: HistoryPosition,
        paths: Iterable[str | os.PathLike[str]] | None = None,
        *,
        skip_conflicts: bool = False,
        dry_run: bool = False,
    ) -> EditorResult:
        """Take back every edit since a position, in all files at once.

        Files that were created are removed, those that were deleted or moved are back. What others
        changed elsewhere in the files stays. It is one edit of several files itself: all of it is
        done or nothing, also after a crash, and ``undo_edit`` of one of the files takes it back.

        Args:
            position: What `position` returned then.
            paths: The absolute paths of the files to take back; by default all.
            skip_conflicts: Leave files as they are whose place somebody else changed, or whose
                history does not reach back so far, and name them; by default nothing is done.
            dry_run: Write nothing; the result tells what would be.

        Returns:
            What was done; ``files`` has a result for each file that was changed.

        Raises:
            FileChangedError: Somebody else changed the same place of a file, or deleted it.
            NoHistoryError: No edit was made since.
            EditorError: A file cannot be written.
        """
        targets = None if paths is None else [parse_path(path, self.workspace) for path in paths]
        self._state.finish_interrupted(*(targets or ()))
        result, contents = undo_to(
            self.history_store,
            self.workspace,
            position,
            targets,
            skip_conflicts=skip_conflicts,
            dry_run=dry_run,
        )
        self._state.last_read.update(contents)
        return result

    def overwrite(
        self, path: Path, compute: Callable[[bytes | None], bytes], mode: int | None = None
    ) -> None:
        """Write a file as a whole, as a step that can be undone.

        Nothing is checked: it is for callers with rules of their own.

        Args:
            path: The absolute path.
            compute: Given the file, or None if it is not there, returns what it becomes.
            mode: Permissions of a new file; by default those of the umask.

        Raises:
            OSError: It could not be written.
            FileChangedError: Somebody else keeps writing it.
        """
        overwrite(self._state, path, compute, mode)

    def _view(self, path: Path, view_range: list[int] | tuple[int, int] | None) -> EditorResult:
        result, shown = view(path, view_range, self._state.max_file_bytes)
        if shown is not None:
            self._state.last_read.remember(real_path(path), shown)
        return result

    def _undo_or_redo(self, path: Path, command: str, dry_run: bool) -> EditorResult:
        if exists(path):
            check_regular(path)
        result, contents = undo_or_redo(self.history_store, path, command, dry_run=dry_run)
        self._state.last_read.update(contents)
        return result

    def _patch(self, path: Path, text: str, linting: bool, dry_run: bool) -> EditorResult:
        from oh_jupyter.editor.patch_files import patch_files

        return patch_files(self._state, path, text, linting=linting, dry_run=dry_run)
