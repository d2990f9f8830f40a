"""Blocking handlers of file Actions; failures become the same Observations as in OpenHands."""

from __future__ import annotations

import codecs
import io
import os
import sys
from pathlib import Path
from typing import Any

from oh_jupyter.config import Settings
from oh_jupyter.editor.changed_files import ChangedFile
from oh_jupyter.editor.editor import FileEditor
from oh_jupyter.editor.files import atomic_write
from oh_jupyter.editor.files.path_guard import make_parents, open_guarded
from oh_jupyter.editor.files.paths import DOCUMENT_SUFFIXES, check_regular
from oh_jupyter.editor.lint import is_auto_lint
from oh_jupyter.editor.messages import EDITOR_FAILURE
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.text.edits import write_range
from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, unified_diff, unified_diffs
from oh_jupyter.editor.text.text_file import Encoding, TextFile, detect
from oh_jupyter.editor.text.views import (
    LineSeeker,
    data_url,
    decode_lines,
    detect_by_head,
    has_wide_newlines,
)
from oh_jupyter.errors import EditorError
from oh_jupyter.events import (
    ErrorObservation,
    FileEditAction,
    FileEditObservation,
    FileReadAction,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
    Observation,
)

__all__ = ["edit_file", "read_file", "write_file"]

_MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".pdf": "application/pdf",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".ogg": "video/ogg",
}
_BINARY = "ERROR_BINARY_FILE"
_MAX_READ_BYTES = 32 * 1024 * 1024  # of one Observation
_STREAMED_BYTES = 1024 * 1024  # above it only the requested lines are read
_NEW_FILE_MODE = 0o664


def read_file(action: FileReadAction, *, cwd: str, editor: FileEditor) -> Observation:
    """Read a file, or show its numbered view.

    Images, PDFs and videos become data URLs, without a check for binary files. A relative path
    starts at ``cwd``.

    Args:
        action: The file and the range of lines.
        cwd: The shell's working directory.
        editor: The editor, for ``impl_source="oh_aci"``.

    Returns:
        The text, the numbered view, or a data URL; or an error.
    """
    path = Path(cwd, action.path)
    media_type = _MEDIA_TYPES.get(path.suffix.lower())
    numbered = action.impl_source == "oh_aci"
    is_document = path.suffix.lower() in DOCUMENT_SUFFIXES
    if numbered and (media_type is None or is_document or not Path(action.path).is_absolute()):
        return _view(action, editor, binary_refused=path.is_file() and not is_document)
    try:
        if path.is_dir():
            raise IsADirectoryError
        editor.finish_interrupted(path)
        size = check_regular(path)
        if media_type is None and size > _STREAMED_BYTES and (action.start > 0 or action.end != -1):
            return _read_lines(path, action)
        if size > _MAX_READ_BYTES:
            return ErrorObservation(_too_large(path, size))
        data, _ = atomic_write.read(path)
    except FileNotFoundError:
        return ErrorObservation(
            f"File not found: {path}. Your current working directory is {cwd}.",
            reason_code="file_not_found",
        )
    except IsADirectoryError:
        return ErrorObservation(f"Path is a directory: {path}. You can only read files")
    except (OSError, ValueError, EditorError) as error:
        return ErrorObservation(f"File {path} cannot be read: {error}")
    if media_type is not None:
        return FileReadObservation(
            data_url(data, media_type), path=str(path), impl_source=action.impl_source
        )
    file = TextFile.parse(data)
    if file is None:
        return ErrorObservation(_BINARY)
    editor.remember_shown(path, data)
    return FileReadObservation(_select(file.text, action.start, action.end), path=str(path))


def _read_lines(path: Path, action: FileReadAction) -> Observation:
    """Read a range of lines of a large file, without the rest."""
    with open(open_guarded(path, os.O_RDONLY), "rb") as stream:
        encoding = detect_by_head(stream)
        if encoding is None:
            return ErrorObservation(_BINARY)
        if has_wide_newlines(encoding):
            return ErrorObservation(
                f"File {path} cannot be read by lines: it is in {encoding.name} and larger than "
                f"{_STREAMED_BYTES // 1024**2} MB. Use Python code to read it."
            )
        data = LineSeeker(stream).read(action.start, action.end, _MAX_READ_BYTES)
    if data is None:
        return ErrorObservation(_too_large(path, os.path.getsize(path)))
    text = decode_lines(data, encoding)
    if text is None:
        return ErrorObservation(_BINARY)
    return FileReadObservation(text, path=str(path))


def _too_large(path: Path, size: int) -> str:
    return (
        f"File {path} cannot be read: it has {size / 1024**2:.0f} MB, and the limit is "
        f"{_MAX_READ_BYTES // 1024**2} MB. Read a range of its lines with `start` and `end`, or "
        "use Python code."
    )


def _view(action: FileReadAction, editor: FileEditor, *, binary_refused: bool) -> Observation:
    if binary_refused and _is_binary(Path(action.path)):
        return ErrorObservation(_BINARY)
    seen = FileReadObservation("", path=action.path, impl_source="oh_aci")
    try:
        seen.content = editor(
            command="view", path=action.path, view_range=action.view_range or None
        ).output
    except EditorError as error:
        seen.content, seen.outcome = EDITOR_FAILURE.format(error), "failed"
    return seen


def _is_binary(path: Path) -> bool:
    try:
        check_regular(path)
        return detect(atomic_write.read(path)[0]) is None
    except (OSError, EditorError):
        return False  # the view reports the error


def _select(text: str, start: int, end: int) -> str:
    if start <= 0 and end == -1:
        return text
    lines = LineSeeker(io.BytesIO(text.encode())).read(max(start, 0), end, sys.maxsize)
    return (lines or b"").decode()


def write_file(
    action: FileWriteAction,
    *,
    cwd: str,
    owner: tuple[int, int] | None = None,
    editor: FileEditor | None = None,
) -> Observation:
    """Write a file, or replace a range of its lines.

    As in the protocol, content without a final newline gets one. Unlike the protocol's server,
    content with a final newline does not get another, which would grow the file with every read
    and write. Empty content stores nothing.

    Args:
        action: The content and the range of lines.
        cwd: The shell's working directory.
        owner: User and group id of a new file; by default those of the process.
        editor: The editor whose history records the write as a step to undo.

    Returns:
        An empty Observation with the path and the diff; or an error.
    """
    path = Path(cwd, action.path)
    diff: str | None = None

    def compute(old: bytes | None) -> bytes:
        nonlocal diff
        data, diff = _new_content(action, old, str(path))
        return data

    try:
        if path.is_dir():
            raise IsADirectoryError
        make_parents(path)
        existed = path.exists()
        if existed:
            check_regular(path)
        if editor is not None:
            editor.overwrite(path, compute, _NEW_FILE_MODE)
        else:
            data = compute(atomic_write.read(path)[0] if existed else None)
            atomic_write.replace(path, data, mode=_NEW_FILE_MODE)
    except FileNotFoundError:
        return ErrorObservation(f"File not found: {path}", reason_code="file_not_found")
    except IsADirectoryError:
        return ErrorObservation(f"Path is a directory: {path}. You can only write to files")
    except UnicodeDecodeError:
        return ErrorObservation(f"File could not be decoded as utf-8: {path}")
    except (OSError, ValueError, EditorError) as error:
        return ErrorObservation(f"File {path} cannot be written: {error}")
    if owner is not None and not existed and hasattr(os, "chown"):
        try:
            os.chown(path, *owner, follow_symlinks=False)
        except OSError as error:
            return ErrorObservation(
                f"File {path} written, but failed to change ownership and permissions: {error}"
            )
    return FileWriteObservation("", path=str(path), diff=diff)


def _new_content(action: FileWriteAction, old: bytes | None, path: str) -> tuple[bytes, str | None]:
    """Return the new bytes of a file, and the diff unless there is no old file."""
    data = old or b""
    encoding = Encoding("utf-8", data[:3] if data.startswith(codecs.BOM_UTF8) else b"")
    file = TextFile(data, encoding)
    if action.exact and (action.start > 0 or action.end != -1):
        raise ValueError("an exact write replaces the whole file; leave out start and end")
    if action.exact:
        written = action.content.encode()
        return written, None if old is None else _diff_of_bytes(data, written, path)
    written = write_range(file, action.content, action.start, action.end)[0]
    if old is None:
        return written, None
    return written, unified_diff(file.text, TextFile(written, encoding).text, path)


def _diff_of_bytes(old: bytes, new: bytes, path: str) -> str | None:
    """Return the diff of two whole contents, or None if one of them is no text."""
    before, after = TextFile.parse(old), TextFile.parse(new)
    if before is None or after is None:
        return None
    return unified_diff(before.text, after.text, path)


def edit_file(
    action: FileEditAction, *, cwd: str, editor: FileEditor, settings: Settings | None = None
) -> Observation:
    """Run an editor command, or merge a draft.

    Args:
        action: The command or the draft.
        cwd: The shell's working directory, for drafts; paths of commands are absolute.
        editor: The editor.
        settings: The model to merge drafts, by default none; and whether to lint.

    Returns:
        The editor's output, or ``ERROR:`` and the reason. As in the protocol, ``old_content``
        and ``new_content`` are the arguments, not the file.
    """
    if action.impl_source == "llm_based_edit":
        from oh_jupyter.editor.draft import edit_by_draft

        return edit_by_draft(action, cwd=cwd, editor=editor, settings=settings or Settings())
    is_write = action.command == "write"  # with empty content it removes lines
    try:
        result = editor(
            command=action.command,
            path=action.path,
            file_text=action.file_text,
            old_str=action.old_str,
            new_str=action.new_str,
            insert_line=_line_number(action.insert_line),
            enable_linting=action.enable_linting or is_auto_lint(settings),
            content=action.content or action.file_text or ("" if is_write else None),
            start=action.start - (action.start > 0),
            end=action.end,
            cell=action.cell,
            edit_mode=action.edit_mode,
            cell_type=action.cell_type,
            to=action.to,
            replace_all=action.replace_all,
            dry_run=action.dry_run,
        )
    except EditorError as error:
        return _edited(action, EDITOR_FAILURE.format(error), outcome="failed")
    diff, context_diff = _diffs(result)
    observation = _edited(
        action,
        result.output,
        diff="\n".join(line.rstrip() for line in diff.split("\n")),
        around_excerpts=result.around_excerpts,
        notes=result.notes,
        dry_run=result.dry_run,
        changed_paths=[file.path for file in result.files],
    )
    observation.context_diff = context_diff
    return observation


def _edited(
    action: FileEditAction, content: str, *, diff: str = "", **facts: Any
) -> FileEditObservation:
    return FileEditObservation(
        content,
        path=action.path,
        old_content=action.old_str,
        new_content=action.new_str,
        impl_source="oh_aci",
        diff=diff,
        **facts,
    )


def _diffs(result: EditorResult) -> tuple[str, str]:
    """Return the protocol's diff without context lines, and the one for people.

    Notebooks are compared by cells.
    """
    if result.files:
        pairs = [_diffs(file) for file in result.files]
        return "\n".join(d for d, _ in pairs if d), "\n".join(d for _, d in pairs if d)
    old, new, path = result.old_content, result.new_content or "", Path(result.path)
    diffs = [""]
    if is_notebook(path) and (old or new):
        before, after = (
            None if text is None else text.encode("utf-8", "surrogatepass")
            for text in (old, result.new_content)
        )
        diffs = ChangedFile.between(path, before, after).diffs(0, CONTEXT_LINES)
    if not diffs[0] and old is not None:
        diffs = unified_diffs(old, new, result.path, 0, CONTEXT_LINES, counts_end=False)
    elif not diffs[0]:
        # The protocol's diff of a new unterminated file removes an empty line.
        whole = f"{new}\n" if new and not new.endswith("\n") else new
        bare = unified_diff("", whole if result.dry_run else new, result.path)
        diffs = [bare, unified_diff("", whole, result.path)]
    if result.dry_run and old is None:
        diffs = [diff.replace(f"--- {result.path}", "--- /dev/null", 1) for diff in diffs]
    return diffs[0], diffs[1]


def _line_number(value: int | str | None) -> int | None:
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        raise EditorError(f"Invalid insert_line value: '{value}'. Expected an integer.") from None
