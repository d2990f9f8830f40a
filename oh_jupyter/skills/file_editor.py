"""The file editor as a skill that returns a machine-readable string."""

from __future__ import annotations

import json
import uuid
from functools import cache
from typing import Any

from oh_jupyter.editor import EditorError, EditorResult, FileEditor
from oh_jupyter.editor.messages import EDITOR_FAILURE


@cache
def _editor() -> FileEditor:
    return FileEditor()


def file_editor(
    command: str,
    path: str,
    file_text: str | None = None,
    view_range: list[int] | None = None,
    old_str: str | None = None,
    new_str: str | None = None,
    insert_line: int | None = None,
    enable_linting: bool = False,
    content: str | None = None,
    start: int = 0,
    end: int = -1,
    **ignored: Any,
) -> str:
    """View, create and edit files.

    Args:
        command: view, create, str_replace, insert, undo_edit, redo_edit or write.
        path: Absolute path of a file or directory.
        file_text: For create: the text of the file.
        view_range: For view: first and last line, counted from 1; -1 is the end.
        old_str: For str_replace: the text to replace.
        new_str: For str_replace and insert: the new text.
        insert_line: For insert: the line after which to insert.
        enable_linting: Report syntax errors that an edit introduced.
        content: For write: the new lines.
        start: For write: the first line to replace, counted from 0.
        end: For write: the line after the last to replace; -1 is the end.
        ignored: Other arguments of an edit action.

    Returns:
        The result as one line of JSON, between tags with a random id.
    """
    try:
        result = _editor()(
            command=command,
            path=path,
            file_text=file_text,
            view_range=view_range,
            old_str=old_str,
            new_str=new_str,
            insert_line=insert_line,
            enable_linting=enable_linting,
            content=content,
            start=start,
            end=end,
        )
    except EditorError as error:
        return _tagged(EditorResult("", error=str(error), path=str(path)))
    return _tagged(result)


def _tagged(result: EditorResult) -> str:
    failed = result.error is not None
    fields = {
        "output": None if failed else result.output,
        "error": result.error,
        "path": result.path,
        "prev_exist": result.prev_exist,
        "old_content": result.old_content,
        "new_content": result.new_content,
        "formatted_output_and_error": EDITOR_FAILURE.format(result.error)
        if failed
        else result.output,
    }
    tag = f"oh_aci_output_{uuid.uuid4().hex}"
    return f"<{tag}>\n{json.dumps(fields)}\n</{tag}>"
