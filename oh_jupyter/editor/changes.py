"""Changing one file: read, compute, write and report, while nobody else edits it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from oh_jupyter.editor import reading
from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.paths import check_path, exists
from oh_jupyter.editor.history.edit_history import ConcurrentWriteError
from oh_jupyter.editor.messages import DRY_RUN, cannot_write, invalid, too_large
from oh_jupyter.editor.notebook.validation import check_notebook
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.state import MAX_ATTEMPTS, EditorState, real_path, still_being_written
from oh_jupyter.editor.text.commands import Command, NewFile
from oh_jupyter.editor.text.edits import Edit
from oh_jupyter.editor.text.text_file import TextFile
from oh_jupyter.editor.text.views import number_lines

__all__ = ["apply", "create", "encoded", "overwrite"]


def create(state: EditorState, path: Path, text: str, *, dry_run: bool = False) -> EditorResult:
    """Make a new file.

    Args:
        state: What the editor knows.
        path: The absolute path; there must be nothing.
        text: The text, stored as it is.
        dry_run: Write nothing.

    Returns:
        What was done.

    Raises:
        EditorError: It was refused; nothing was changed.
    """
    data = encoded(path, text, state.max_file_bytes)
    output = f"File created successfully at: {path}"
    if not path.parent.exists():
        output += f"\nThe directory {path.parent} did not exist and was created."
    if not dry_run:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with state.history.open(path) as history:
                check_path("create", path, restorable=False)  # it may be there by now
                history.sync(None)
                history.change("create", None, data, None)
        except (OSError, ConcurrentWriteError) as error:
            raise cannot_write(path, error) from None
        state.last_read.remember(real_path(path), data)
    return EditorResult(
        DRY_RUN * dry_run + output,
        path=str(path),
        prev_exist=False,
        new_content=text,
        dry_run=dry_run,
    )


def encoded(path: Path, text: str, max_file_bytes: int) -> bytes:
    """Encode the text of a new file.

    Args:
        path: The file, for the error.
        text: The text.
        max_file_bytes: The size in bytes above which it is refused.

    Returns:
        The bytes, in UTF-8.

    Raises:
        EditorParameterInvalidError: It cannot be encoded.
        FileValidationError: It is too large.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise invalid("file_text", ascii(text), f"It cannot be encoded: {error}.") from None
    if len(data) > max_file_bytes:
        raise too_large(path, len(data), max_file_bytes)
    return data


def apply(
    state: EditorState,
    command: Command | NewFile,
    *,
    linting: bool = False,
    dry_run: bool = False,
) -> EditorResult:
    """Carry out a command.

    Args:
        state: What the editor knows.
        command: The command.
        linting: Report what the edit broke.
        dry_run: Write nothing.

    Returns:
        What was done.

    Raises:
        EditorError: It was refused; nothing was changed.
    """
    path = command.path
    if isinstance(command, Command) and command.if_missing is not None and not exists(path):
        command = command.if_missing
    if isinstance(command, NewFile):
        return create(state, path, command.text, dry_run=dry_run)
    if dry_run:
        file, _ = reading.read_text(path, state.max_file_bytes)
        edit, note = command.compute(file, _shown(state, real_path(path), file))
        _check(state, path, file, edit)
    else:
        file, edit, note = _write(state, command)
    new = TextFile(edit.data, file.encoding)
    shown = edit.excerpt
    if shown is None:
        shown = new.around(edit.offset, edit.before, edit.after)
    snippet = number_lines(shown, edit.caption or command.caption, edit.first)
    output = f"{DRY_RUN * dry_run}The file {path} has been edited. {snippet}"
    if linting:
        from oh_jupyter.editor.lint.edit_lint import lint_report

        output += f"\n{lint_report(path, file.text, new.text)}\n"
    return EditorResult(
        output + command.review + note,
        path=str(path),
        old_content=file.text,
        new_content=new.text,
        dry_run=dry_run,
    )


def _write(state: EditorState, command: Command) -> tuple[TextFile, Edit, str]:
    """Compute and write, holding the file's lock; start over if somebody wrote it meanwhile."""
    path = command.path
    with state.history.open(path) as history:
        for _ in range(MAX_ATTEMPTS):
            file, fingerprint = reading.read_text(path, state.max_file_bytes)
            shown = _shown(state, history.path, file)
            state.last_read.remember(history.path, file.data)  # a refusal shows what changed
            edit, note = command.compute(file, shown)
            _check(state, path, file, edit)
            try:
                history.sync(file.data)
                history.change(command.name, file.data, edit.data, fingerprint)
            except ConcurrentWriteError:
                continue
            except OSError as error:
                raise cannot_write(path, error) from None
            state.last_read.remember(history.path, edit.data)
            return file, edit, note
    raise still_being_written(path)


def _shown(state: EditorState, real: Path, file: TextFile) -> str | None:
    """The text that was shown last, if that is not what is there now."""
    shown = state.last_read.before(real, file.data)
    old = TextFile.parse(shown) if shown is not None else None
    return old.text if old is not None else None


def _check(state: EditorState, path: Path, file: TextFile, edit: Edit) -> None:
    """Refuse an edit that would leave too large a file, or a notebook that is none any more."""
    if len(edit.data) > state.max_file_bytes:
        raise too_large(path, len(edit.data), state.max_file_bytes)
    if path.suffix.lower() == ".ipynb":
        check_notebook(path, file.text, TextFile(edit.data, file.encoding).text)


def overwrite(
    state: EditorState,
    path: Path,
    compute: Callable[[bytes | None], bytes],
    mode: int | None = None,
) -> None:
    """Write a file as a whole, as a step that can be undone, without any check.

    Args:
        state: What the editor knows.
        path: The absolute path.
        compute: Given the file, or None if it is not there, returns what it becomes.
        mode: Permissions of a new file; by default those of the umask.

    Raises:
        OSError: It could not be written.
        FileChangedError: Somebody else keeps writing it.
    """
    with state.history.open(path) as history:
        for _ in range(MAX_ATTEMPTS):
            old, fingerprint = atomic_write.read(path) if exists(path) else (None, None)
            new = compute(old)
            history.sync(old)
            with suppress(ConcurrentWriteError):
                history.change("write", old, new, fingerprint, mode=mode)
                state.last_read.remember(real_path(path), new)
                return
    raise still_being_written(path)
