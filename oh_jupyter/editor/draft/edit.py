"""Carrying out a draft edit, with limits, words and Observations of OpenHands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from oh_jupyter.config import Settings
from oh_jupyter.editor.draft.markers import read_draft, without_reason
from oh_jupyter.editor.draft.merge import Merged, merge
from oh_jupyter.editor.draft.model import DraftModel, check_syntax, merge_prompt, repaired
from oh_jupyter.editor.editor import FileEditor
from oh_jupyter.editor.lint import is_auto_lint
from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import Document, rewrite_listing
from oh_jupyter.editor.notebook.validation import check_notebook, is_notebook
from oh_jupyter.editor.reading import read_text
from oh_jupyter.editor.text.encoding import UTF8
from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, common_lengths, unified_diffs
from oh_jupyter.editor.text.text_file import EncodeError, TextFile
from oh_jupyter.errors import DraftError, EditorError, FileChangedError
from oh_jupyter.events import ErrorObservation, FileEditAction, FileEditObservation, Observation

CHUNK_LINES = 20


class Chunk(NamedTuple):
    """Some lines of a file."""

    first: int  # the first of them, counted from 1
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


_SHOWN_CHUNKS = 3


def closest_chunks(lines: list[str], draft: str, first: int = 1) -> list[Chunk]:
    """Chunks of 20 lines with the longest common subsequences with a draft, as in OpenHands."""
    parts = [lines[start : start + CHUNK_LINES] for start in range(0, len(lines), CHUNK_LINES)]
    texts = ["\n".join(part) for part in parts]
    chunks = [
        Chunk(first + number * CHUNK_LINES, part, common / len(text) if text else 0.0)
        for number, (part, text, common) in enumerate(
            zip(parts, texts, common_lengths(texts, draft), strict=True)
        )
    ]
    return sorted(chunks, key=lambda chunk: -chunk.similarity)[:_SHOWN_CHUNKS]


MAX_LINES = 300
"""Lines that a draft may be about; one more is let through, as in OpenHands."""

_MAX_BYTES = 10 * 1024 * 1024
_MAX_ATTEMPTS = 3  # while somebody else keeps writing the file


class _Range(NamedTuple):
    """Lines of a file: the first, counted from 0, and the one after the last."""

    start: int
    end: int


@dataclass(frozen=True)
class _Document:
    """What a draft is about: the text of a file, or a notebook as it is shown."""

    path: Path
    file: TextFile
    notebook: Notebook | None
    text: TextFile  # of a notebook the headings and sources of its cells

    @classmethod
    def read(cls, path: Path) -> _Document:
        file, _ = read_text(path, _MAX_BYTES)
        notebook = Notebook.parse(file.text) if is_notebook(path) else None
        if notebook is None:
            return cls(path, file, None, file)
        listing = notebook.listing().encode("utf-8", "surrogatepass")
        return cls(path, file, notebook, TextFile(listing, UTF8))

    def stored(self, data: bytes) -> bytes:
        """The file, if its text becomes this data."""
        if self.notebook is None:
            return data
        listing = data.decode("utf-8", "surrogatepass")
        edit = rewrite_listing(Document(self.path, self.file, self.notebook), listing)
        return edit[0].data if edit is not None else self.file.data

    def spliced(self, place: _Range, new: list[str]) -> str:
        """Text of the file with other lines in a range."""
        start, end, text = _replacement(self.text, place, new)
        spliced = self.text.text[:start] + text + self.text.text[end:]
        if self.notebook is None:
            return spliced
        data = self.stored(spliced.encode("utf-8", "surrogatepass"))
        return TextFile(data, self.file.encoding).text


def edit_by_draft(
    action: FileEditAction, *, cwd: str, editor: FileEditor, settings: Settings
) -> Observation:
    """Merge a draft into a file, or make the file of it.

    Args:
        action: The draft in ``content``, its range in ``start`` and ``end``.
        cwd: Where a relative path starts.
        editor: The editor that writes, so that the edit can be undone.
        settings: Which model to ask where the merge is in doubt.

    Returns:
        The diff, with the file's old and new text; or an error, and nothing was changed.
    """
    path = Path(cwd, action.path)
    try:
        if not path.exists():
            return _created(action, path, editor)
        for attempt in range(_MAX_ATTEMPTS):
            try:
                return _edited(action, path, editor, settings)
            except FileChangedError:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
    except (EditorError, OSError) as error:
        return ErrorObservation(str(error))
    raise AssertionError("unreachable")


def _created(action: FileEditAction, path: Path, editor: FileEditor) -> Observation:
    text = without_reason(action.content).strip() + "\n"
    editor(command="create", path=path, file_text=text)
    return _observation(action, None, text)


def _edited(
    action: FileEditAction, path: Path, editor: FileEditor, settings: Settings
) -> Observation:
    editor.finish_interrupted(path)
    document = _Document.read(path)
    file = document.text
    lines = file.text.split("\n")
    problem = _range_problem(action.start, action.end, len(lines))
    if problem:
        return ErrorObservation(problem)
    if not without_reason(action.content).strip():
        raise DraftError(
            f"The draft for {path} is empty; nothing was changed. To delete lines, show the lines "
            "around them, or use the command str_replace."
        )
    if action.start == -1:
        at = file.line_count
        new = without_reason(action.content).removesuffix("\n").split("\n")
        return _checked(action, document, editor, settings, _Range(at, at), new)
    start, end = action.start - 1, len(lines) if action.end == -1 else action.end
    if end - start > MAX_LINES + 1:
        return ErrorObservation(_too_long(action, path, lines, start, end))
    # Behind the newline at the end of a file, the protocol counts one more line.
    place = _Range(min(start, file.line_count), min(end, file.line_count))
    original = lines[place.start : place.end]
    draft = read_draft(action.content, original)
    whole_file = place.start == 0 and place.end == file.line_count
    merged = merge(original, draft, whole_file=whole_file)
    if isinstance(merged, Merged):
        spliced = document.spliced(place, merged.lines)
        doubt = check_syntax(path, document.file.text, spliced) if draft.markers else ""
        if not doubt:
            return _checked(action, document, editor, settings, place, merged.lines)
    else:
        doubt = merged.reason
    if settings.draft_model is None:
        raise DraftError(_refusal(action, path, original, place, doubt))
    prompt = merge_prompt("\n".join(original), action.content)
    new = DraftModel(settings).ask(prompt, "\n".join(original)).split("\n")
    return _checked(action, document, editor, settings, place, new, by_model=True)


def _checked(
    action: FileEditAction,
    document: _Document,
    editor: FileEditor,
    settings: Settings,
    place: _Range,
    new: list[str],
    *,
    by_model: bool = False,
) -> Observation:
    """Write new lines; linted with auto-lint, and never broken by a model that wrote them."""
    lints = action.enable_linting or is_auto_lint(settings)
    if lints or by_model:
        new = repaired(
            DraftModel(settings) if settings.draft_model is not None else None,
            document.path,
            document.file.text,
            new,
            draft=action.content,
            first=place.start + 1,
            splice=lambda code: document.spliced(place, code),
            syntax_only=not lints,
        )
    return _written(action, document, editor, place, new)


def _replacement(file: TextFile, place: _Range, new: list[str]) -> tuple[int, int, str]:
    """Offsets of the range, and the text for it. The file ends as it did: in a newline or not."""
    start, end = file.offset_of_line(place.start + 1), file.offset_of_line(place.end + 1)
    text = "\n".join(new)
    at_end = place.end >= file.line_count
    open_ended = file.text != "" and not file.text.endswith("\n")
    if new and not (at_end and open_ended):
        text += "\n"
    if open_ended and place.start >= file.line_count:
        text = "\n" + text
    return start, end, text


def _written(
    action: FileEditAction, document: _Document, editor: FileEditor, place: _Range, new: list[str]
) -> Observation:
    path, file = document.path, document.file
    try:
        shown = document.text.replace(*_replacement(document.text, place, new))
        data = document.stored(shown)
    except EncodeError as error:
        raise DraftError(
            f"{path} is in {error.encoding}, which has no character {error.character!a}; nothing "
            "was changed. Use other characters, or convert the file to UTF-8 first."
        ) from None
    check_notebook(path, file.text, TextFile(data, file.encoding).text)

    def compute(now: bytes | None) -> bytes:
        if now != file.data:
            raise FileChangedError(
                f"{path} was changed while the draft was merged; nothing was written. Try again."
            )
        return data

    if data != file.data:
        editor.overwrite(path, compute)
    return _observation(action, document.text.text, TextFile(shown, document.text.encoding).text)


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


def _range_problem(start: int, end: int, total: int) -> str:
    """Check a range in the words of OpenHands; "" if it is one."""
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
    parts = [
        "[Edit error: The range of lines to edit is too long.]",
        f"[The maximum number of lines allowed to edit at once is {MAX_LINES}. "
        f"Got (L{start + 1}-L{end}) {end - start} lines.]",
        "The places of the file that are most like the draft:",
        _places(action, lines),
        f"**IMPORTANT**: Please REDUCE the range of edits to less than {MAX_LINES} lines by "
        f"setting `start` and `end` in the edit action of {path}.",
    ]
    return "\n".join(parts)


def _places(action: FileEditAction, lines: list[str], first: int = 1) -> str:
    parts = []
    for number, chunk in enumerate(closest_chunks(lines, action.content, first=first), 1):
        parts += [
            f"[begin relevant snippet {number}. Line range: L{chunk.first}-L{chunk.last}. "
            f"Similarity: {chunk.similarity:.2f}]",
            str(chunk),
            f"[end relevant snippet {number}]",
        ]
    return "\n".join(parts)


def _refusal(
    action: FileEditAction, path: Path, original: list[str], place: _Range, doubt: str
) -> str:
    return (
        f"The draft was not merged, and {path} is unchanged: {doubt}\n"
        f"The closest places:\n{_places(action, original, place.start + 1)}\n"
        "No model is set up that could merge it (c.OhJupyter.draft_model). Show unchanged lines "
        "around each change, or use the commands str_replace and insert."
    )
