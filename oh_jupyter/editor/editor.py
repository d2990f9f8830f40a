"""The file editor: one call for each command, exact in what it says and does."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from oh_jupyter.editor import atomic, edits, foreign, reading, undo
from oh_jupyter.editor.history import History, HistoryEntry, Superseded, default_folder
from oh_jupyter.editor.messages import (
    REVIEW,
    REVIEW_INSERTION,
    cannot_write,
    invalid,
    missing,
    too_large,
)
from oh_jupyter.editor.notebook import check_notebook
from oh_jupyter.editor.paths import (
    check_path,
    check_regular,
    exists,
    parse_path,
)
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.seen import Seen
from oh_jupyter.editor.text import TextFile
from oh_jupyter.editor.views import (
    number_lines,
)
from oh_jupyter.errors import EditorError, FileChangedError

__all__ = ["COMMANDS", "FileEditor"]

COMMANDS = ("view", "create", "str_replace", "insert", "undo_edit", "redo_edit", "write")
"""The commands that the editor knows."""

_T = TypeVar("_T")

_ATTEMPTS = 3  # at an edit, while somebody else keeps writing the file


class FileEditor:
    """Views and edits files on behalf of a person or an agent.

    Call it with ``command=`` and ``path=``. It may be called from several threads, and
    several editors, also in other processes, may work on the same files.

    Attributes:
        workspace: Where relative paths are looked for, to suggest absolute ones.
    """

    def __init__(
        self,
        workspace_root: str | os.PathLike[str] | None = None,
        max_file_size_mb: float = 10,
        history_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make an editor; nothing is read or written yet.

        Args:
            workspace_root: The workspace; by default the working directory.
            max_file_size_mb: Files above this size, in MiB, are refused.
            history_dir: Where the undo history is kept; by default a folder for this
                workspace below ``$XDG_STATE_HOME/oh_jupyter/history``.
        """
        self.workspace = Path(workspace_root if workspace_root is not None else ".").absolute()
        self._max_size = int(max_file_size_mb * 1024 * 1024)
        self._history_dir = Path(history_dir).absolute() if history_dir is not None else None
        self._history: History | None = None
        self._seen = Seen()

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
            content: For ``write``: the new lines.
            start: For ``write``: the first line to replace, counted from 0.
            end: For ``write``: the line after the last to replace; -1 is the end.

        Returns:
            What was done.

        Raises:
            EditorError: It was refused; nothing was changed.
        """
        target = parse_path(path, self.workspace)
        for name, text in (
            ("file_text", file_text),
            ("old_str", old_str),
            ("new_str", new_str),
            ("content", content),
        ):
            if text is not None and not isinstance(text, str):
                raise invalid(name, text, "It should be a string.")
        restorable = command in ("undo_edit", "redo_edit") and self.history_store.has(target)
        check_path(command, target, restorable=restorable)
        match command:
            case "view":
                return self._view(target, view_range)
            case "create":
                return self._create(target, _required(command, "file_text", file_text))
            case "str_replace":
                old = _required(command, "old_str", old_str)
                return self._str_replace(target, old, new_str or "", enable_linting)
            case "insert":
                line = _required(command, "insert_line", insert_line)
                text = _required(command, "new_str", new_str)
                return self._insert(target, line, text, enable_linting)
            case "write":
                text = _required(command, "content", content)
                return self._write(target, text, start, end, enable_linting)
            case "undo_edit" | "redo_edit":
                return self._walk(target, command)
        raise EditorError(
            f"Unrecognized command {command}. The allowed commands for the oh_editor tool are: "
            + ", ".join(COMMANDS)
        )

    @property
    def history_store(self) -> History:
        """Where the undo steps are kept."""
        if self._history is None:
            self._history = History(self._history_dir or default_folder(self.workspace))
        return self._history

    def history(self, path: str | os.PathLike[str]) -> list[HistoryEntry]:
        """List the steps of a file that can be undone or redone.

        Args:
            path: The absolute path; the file need not exist any more.

        Returns:
            The steps, the oldest first.
        """
        target = parse_path(path, self.workspace)
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
        return undo.diff(self.history_store, parse_path(path, self.workspace), steps)

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
        with self.history_store.open(path) as history:
            for _ in range(_ATTEMPTS):
                old, stamp = atomic.read(path) if exists(path) else (None, None)
                new = compute(old)
                history.notice(old)
                with suppress(Superseded):
                    history.change("write", old, new, stamp, mode=mode)
                    self._seen.remember(_real(path), new)
                    return
        raise _still_written(path)

    def _view(self, path: Path, view_range: list[int] | tuple[int, int] | None) -> EditorResult:
        result, shown = reading.view(path, view_range, self._max_size)
        if shown is not None:
            self._seen.remember(_real(path), shown)
        return result

    # Edits

    def _create(self, path: Path, text: str) -> EditorResult:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise invalid("file_text", ascii(text), f"It cannot be encoded: {error}.") from None
        if len(data) > self._max_size:
            raise too_large(path, len(data), self._max_size)
        output = f"File created successfully at: {path}"
        try:
            if not path.parent.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                output += f"\nThe directory {path.parent} did not exist and was created."
            with self.history_store.open(path) as history:
                check_path("create", path, restorable=False)  # it may be there by now
                history.notice(None)
                history.change("create", None, data, None)
        except (OSError, Superseded) as error:
            raise cannot_write(path, error) from None
        self._seen.remember(_real(path), data)
        return EditorResult(output, path=str(path), prev_exist=False, new_content=text)

    def _str_replace(self, path: Path, old: str, new: str, linting: bool) -> EditorResult:
        if old == new:
            raise invalid(
                "new_str",
                new,
                "No replacement was performed. `new_str` and `old_str` must be different.",
            )

        def compute(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
            start, end = edits.find_unique(file, old, new, path)
            note = foreign.check_match(path, shown, file.text, start, end) if shown else ""
            return edits.replace_range(file, start, end, new), note

        return self._change("str_replace", path, compute, f"a snippet of {path}", REVIEW, linting)

    def _insert(self, path: Path, line: int, text: str, linting: bool) -> EditorResult:
        if not isinstance(line, int) or isinstance(line, bool):
            raise invalid("insert_line", line, "It should be an integer.")

        def compute(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
            edit = edits.insert_after(file, line, text)
            note = foreign.check_lines(path, shown, file.text, line) if shown else ""
            return edit, note

        what = "a snippet of the edited file"
        return self._change("insert", path, compute, what, REVIEW_INSERTION, linting)

    def _write(self, path: Path, text: str, start: int, end: int, linting: bool) -> EditorResult:
        for name, value in (("start", start), ("end", end)):
            if not isinstance(value, int) or isinstance(value, bool):
                raise invalid(name, value, "It should be an integer.")
        if not exists(path):
            return self._create(path, text if text.endswith("\n") or not text else text + "\n")

        def compute(file: TextFile, shown: str | None) -> tuple[edits.Edit, str]:
            line = file.line_count if end == -1 else end
            note = foreign.check_lines(path, shown, file.text, line) if shown else ""
            return edits.write_lines(file, text, start, end), note

        return self._change("write", path, compute, f"a snippet of {path}", REVIEW, linting)

    def _change(
        self,
        command: str,
        path: Path,
        compute: Callable[[TextFile, str | None], tuple[edits.Edit, str]],
        what: str,
        review: str,
        linting: bool,
    ) -> EditorResult:
        """Read, compute, write and report, while nobody else edits the file."""
        with self.history_store.open(path) as history:
            for _ in range(_ATTEMPTS):
                file, stamp = reading.read_text(path, self._max_size)
                shown = self._seen.before(_real(path), file.data)
                old = TextFile.parse(shown) if shown is not None else None
                self._seen.remember(_real(path), file.data)  # a refusal shows what changed
                edit, note = compute(file, old.text if old is not None else None)
                new = TextFile(edit.data, file.encoding)
                if len(edit.data) > self._max_size:
                    raise too_large(path, len(edit.data), self._max_size)
                check_notebook(path, file.text, new.text)
                try:
                    history.notice(file.data)
                    history.change(command, file.data, edit.data, stamp)
                except Superseded:
                    continue
                except OSError as error:
                    raise cannot_write(path, error) from None
                self._seen.remember(_real(path), edit.data)
                break
            else:
                raise _still_written(path)
        snippet = number_lines(new.around(edit.offset, edit.before, edit.after), what, edit.first)
        output = f"The file {path} has been edited. {snippet}"
        if linting:
            from oh_jupyter.editor.lint import lint_report

            output += f"\n{lint_report(path, file.text, new.text)}\n"
        output += review + note
        return EditorResult(output, path=str(path), old_content=file.text, new_content=new.text)

    def _walk(self, path: Path, command: str) -> EditorResult:
        if exists(path):
            check_regular(path)
        result, data = undo.walk(self.history_store, path, command)
        if data is None:
            self._seen.forget(_real(path))
        else:
            self._seen.remember(_real(path), data)
        return result


def _required(command: str, parameter: str, value: _T | None) -> _T:
    if value is None:
        raise missing(command, parameter)
    return value


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _still_written(path: Path) -> FileChangedError:
    return FileChangedError(
        f"Somebody else keeps writing {path}; nothing was changed. Try again later."
    )
