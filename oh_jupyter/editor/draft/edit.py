"""Draft edits, with the limits, messages and Observations of OpenHands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from oh_jupyter.config import Settings
from oh_jupyter.editor.draft.merge import Merged, merge
from oh_jupyter.editor.draft.model import (
    DraftModel,
    check_syntax,
    merge_prompt,
    read_draft,
    repaired,
    without_reason,
)
from oh_jupyter.editor.editor import FileEditor
from oh_jupyter.editor.lint import is_auto_lint
from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import NotebookFile, rewrite_listing
from oh_jupyter.editor.notebook.validation import check_notebook, is_notebook
from oh_jupyter.editor.reading import read_text
from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, common_lengths, unified_diffs
from oh_jupyter.editor.text.text_file import EncodeError, TextFile
from oh_jupyter.errors import DraftError, EditorError, FileChangedError
from oh_jupyter.events import ErrorObservation, FileEditAction, FileEditObservation, Observation

_CHUNK_LINES = 20
_SHOWN_CHUNKS = 3
_MAX_LINES = 300  # of a draft's range; one more is accepted, as in OpenHands
_MAX_BYTES = 10 * 1024 * 1024
_MAX_ATTEMPTS = 3  # while somebody else keeps writing the file


class Chunk(NamedTuple):
    """Some lines of a file."""

    first: int  # counted from 1
    lines: list[str]
    similarity: float

    @property
    def last(self) -> int:
        """The last line, counted from 1."""
        return self.first + len(self.lines) - 1

    def __str__(self) -> str:
        """Show the lines with their numbers."""
        numbered = (f"{number}|{line}" for number, line in enumerate(self.lines, self.first))
        return "\n".join(numbered)


def closest_chunks(lines: list[str], draft: str, first: int = 1) -> list[Chunk]:
    """Return the chunks of 20 lines with the longest common subsequences, as in OpenHands."""
    parts = [lines[start : start + _CHUNK_LINES] for start in range(0, len(lines), _CHUNK_LINES)]
    texts = ["\n".join(part) for part in parts]
    chunks = [
        Chunk(first + number * _CHUNK_LINES, part, common / len(text) if text else 0.0)
        for number, (part, text, common) in enumerate(
            zip(parts, texts, common_lengths(texts, draft), strict=True)
        )
    ]
    return sorted(chunks, key=lambda chunk: -chunk.similarity)[:_SHOWN_CHUNKS]


class _Range(NamedTuple):
    """Lines of a file: the first, counted from 0, and the one after the last."""

    start: int
    end: int


@dataclass(frozen=True)
class _Target:
    """The text that a draft changes: a file, or the listing of a notebook."""

    path: Path
    file: TextFile
    notebook: Notebook | None
    text: TextFile  # for a notebook the headings and sources of its cells

    @classmethod
    def read(cls, path: Path) -> _Target:
        file, _ = read_text(path, _MAX_BYTES)
        notebook = Notebook.parse(file.text) if is_notebook(path) else None
        return cls(path, file, notebook, file if notebook is None else notebook.listing_file())

    def stored(self, data: bytes) -> bytes:
        """Return the bytes of the file for new bytes of the text."""
        if self.notebook is None:
            return data
        listing = data.decode("utf-8", "surrogatepass")
        edit = rewrite_listing(NotebookFile(self.path, self.file, self.notebook), listing)
        return edit[0].data if edit is not None else self.file.data

    def replacement(self, lines: _Range, new: list[str]) -> tuple[int, int, str]:
        """Return the offsets of a range, and its new text; the end of the file keeps its form."""
        file = self.text
        start, end = file.offset_of_line(lines.start + 1), file.offset_of_line(lines.end + 1)
        text = "\n".join(new)
        unterminated = file.text != "" and not file.text.endswith("\n")
        if new and not (lines.end >= file.line_count and unterminated):
            text += "\n"
        if unterminated and lines.start >= file.line_count:
            text = "\n" + text
        return start, end, text

    def spliced(self, lines: _Range, new: list[str]) -> str:
        """Return the text of the file with a range of lines replaced."""
        start, end, text = self.replacement(lines, new)
        spliced = self.text.text[:start] + text + self.text.text[end:]
        if self.notebook is None:
            return spliced
        data = self.stored(spliced.encode("utf-8", "surrogatepass"))
        return TextFile(data, self.file.encoding).text


def edit_by_draft(
    action: FileEditAction, *, cwd: str, editor: FileEditor, settings: Settings
) -> Observation:
    """Merge a draft into a file, or create the file.

    Args:
        action: The draft in ``content``, its range in ``start`` and ``end``.
        cwd: The base of a relative path.
        editor: The editor that writes the file, so that the edit can be undone.
        settings: The model to use if the merge is in doubt.

    Returns:
        The diff, with the file's old and new text; or an error, and nothing was changed.
    """
    path = Path(cwd, action.path)
    try:
        if not path.exists():
            text = without_reason(action.content).strip() + "\n"
            editor(command="create", path=path, file_text=text)
            return _observation(action, None, text)
        for attempt in range(_MAX_ATTEMPTS):
            try:
                editor.finish_interrupted(path)
                return _DraftEdit(action, editor, settings, _Target.read(path)).run()
            except FileChangedError:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
    except (EditorError, OSError) as error:
        return ErrorObservation(str(error))
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class _DraftEdit:
    action: FileEditAction
    editor: FileEditor
    settings: Settings
    target: _Target

    def run(self) -> Observation:
        action, path, file = self.action, self.target.path, self.target.text
        lines = file.text.split("\n")
        range_error = _range_error(action.start, action.end, len(lines))
        if range_error:
            return ErrorObservation(range_error)
        if not without_reason(action.content).strip():
            raise DraftError(
                f"The draft for {path} is empty; nothing was changed. To delete lines, show the "
                "lines around them, or use the command str_replace."
            )
        if action.start == -1:
            at = file.line_count
            new = without_reason(action.content).removesuffix("\n").split("\n")
            return self._write(_Range(at, at), new)
        start, end = action.start - 1, len(lines) if action.end == -1 else action.end
        if end - start > _MAX_LINES + 1:
            return ErrorObservation(_too_long(action, path, lines, start, end))
        # The protocol counts one more line after a final newline.
        edited = _Range(min(start, file.line_count), min(end, file.line_count))
        original = lines[edited.start : edited.end]
        new, by_model = self._merge(edited, original)
        return self._write(edited, new, by_model=by_model)

    def _merge(self, edited: _Range, original: list[str]) -> tuple[list[str], bool]:
        """Return the merged lines, and whether the model merged them."""
        target, content = self.target, self.action.content
        draft = read_draft(content, original)
        whole_file = edited.start == 0 and edited.end == target.text.line_count
        merged = merge(original, draft, whole_file=whole_file)
        if isinstance(merged, Merged):
            spliced = target.spliced(edited, merged.lines)
            doubt = check_syntax(target.path, target.file.text, spliced) if draft.markers else ""
            if not doubt:
                return merged.lines, False
        else:
            doubt = merged.reason
        if self.settings.draft_model is None:
            raise DraftError(
                f"The draft was not merged, and {target.path} is unchanged: {doubt}\n"
                f"The closest places:\n{_closest_places(content, original, edited.start + 1)}\n"
                "No model is configured to merge it (c.OhJupyter.draft_model). Show unchanged "
                "lines around each change, or use the commands str_replace and insert."
            )
        text = "\n".join(original)
        return DraftModel(self.settings).ask(merge_prompt(text, content), text).split("\n"), True

    def _write(self, edited: _Range, new: list[str], *, by_model: bool = False) -> Observation:
        """Write new lines, linted with auto-lint; a model's lines never break the syntax."""
        action, target, settings = self.action, self.target, self.settings
        path, file = target.path, target.file
        lints = action.enable_linting or is_auto_lint(settings)
        if lints or by_model:
            new = repaired(
                DraftModel(settings) if settings.draft_model is not None else None,
                path,
                file.text,
                new,
                draft=action.content,
                first=edited.start + 1,
                splice=lambda code: target.spliced(edited, code),
                syntax_only=not lints,
            )
        try:
            shown = target.text.replace(*target.replacement(edited, new))
            data = target.stored(shown)
        except EncodeError as error:
            raise DraftError(
                f"{path} is in {error.encoding}, which has no character {error.character!a}; "
                "nothing was changed. Use other characters, or convert the file to UTF-8 first."
            ) from None
        check_notebook(path, file.text, TextFile(data, file.encoding).text)

        def compute(now: bytes | None) -> bytes:
            if now != file.data:
                raise FileChangedError(
                    f"{path} was changed while the draft was merged; nothing was written. Try "
                    "again."
                )
            return data

        if data != file.data:
            self.editor.overwrite(path, compute)
        return _observation(action, target.text.text, TextFile(shown, target.text.encoding).text)


def _observation(action: FileEditAction, before: str | None, after: str) -> FileEditObservation:
    bare, context_diff = unified_diffs(
        before or "", after, action.path, 0, CONTEXT_LINES, counts_end=False
    )
    diff = "\n".join(line.rstrip() for line in bare.split("\n"))
    observation = FileEditObservation(
        diff,
        path=action.path,
        prev_exist=before is not None,
        old_content=before or "",
        new_content=after,
        impl_source="llm_based_edit",
        diff=diff,
    )
    observation.context_diff = context_diff
    return observation


def _range_error(start: int, end: int, total: int) -> str:
    """Return OpenHands' error for an invalid range, or ""."""
    where = f"Invalid range for editing: start={start}, end={end}, total lines={total}. "
    if start != -1 and (start < 1 or start > total or (start > end and end != -1)):
        return where + (
            f"start must be >= 1 and <={total} (total lines of the edited file), start <= end, "
            "or start == -1 (append to the end of the file)."
        )
    if end != -1 and (end < 1 or end > total):
        return where + (
            f"end must be >= 1 and <= {total} (total lines of the edited file), end >= start, "
            "or end == -1 (to edit till the end of the file)."
        )
    return ""


def _too_long(action: FileEditAction, path: Path, lines: list[str], start: int, end: int) -> str:
    return (
        "[Edit error: The range of lines to edit is too long.]\n"
        f"[The maximum number of lines allowed to edit at once is {_MAX_LINES}. "
        f"Got (L{start + 1}-L{end}) {end - start} lines.]\n"
        "The places of the file most similar to the draft:\n"
        f"{_closest_places(action.content, lines)}\n"
        f"**IMPORTANT**: Please REDUCE the range of edits to less than {_MAX_LINES} lines by "
        f"setting `start` and `end` in the edit action of {path}."
    )


def _closest_places(draft: str, lines: list[str], first: int = 1) -> str:
    return "\n".join(
        f"[begin relevant snippet {number}. Line range: L{chunk.first}-L{chunk.last}. "
        f"Similarity: {chunk.similarity:.2f}]\n{chunk}\n[end relevant snippet {number}]"
        for number, chunk in enumerate(closest_chunks(lines, draft, first=first), 1)
    )
