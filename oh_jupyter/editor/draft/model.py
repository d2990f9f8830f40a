"""The model that merges drafts, at any endpoint with OpenAI's chat API: prompts and rounds.

A draft is lines of text, and markers that stand for unchanged lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from oh_jupyter.config import Settings
from oh_jupyter.editor.lint import lint_report
from oh_jupyter.editor.text.line_diff import unified_diff
from oh_jupyter.errors import DraftError

if TYPE_CHECKING:
    from openai import OpenAI


_COMMENT = re.compile(
    r"""^\s*(?P<sign>
        \#+ | //+ | --+ | ;+ | %+ | /\*+ | \*+ | <!-- | \{\# | \{/\* | \(\* | REM\b | rem\b
    )\s*(?P<text>.*?)\s*(?:\*+/\}? | --> | \#\} | \*\) )?\s*$""",
    re.VERBOSE,
)
_DOTS = r"(?:\.{3,}|…)"
_MAX_MARKER_CHARS = 200  # markers are short, and the patterns are slow on long lines
# Words that mean unchanged lines.
_STAYS = re.compile(
    r"\b(existing|unchanged|rest|remaining|remains?|no changes?|untouched|intact|unmodified|"
    r"original|previous|keep|kept|same|other)\b",
    re.IGNORECASE,
)
_BETWEEN_DOTS = re.compile(rf"^{_DOTS}\s*(?P<words>.*?)\s*{_DOTS}$")
_LEADING_DOTS = re.compile(rf"^{_DOTS}\s*(?P<words>.*)$")
_TRAILING_DOTS = re.compile(rf"^(?P<words>.*?)\s*{_DOTS}$")
# Words allowed beside them, with dots on one side only.
_COMPANION = re.compile(
    r"the|this|that|all|of|your|as|before|after|above|below|here|code|file|contents?|text|lines?|"
    r"sections?|functions?|methods?|body|class|classes|module|imports?|definitions?|"
    r"implementation|fields|cells?|rows?|entries|items|is|are|was|stays|changes?|no|needed|in|"
    r"between|and|logic"
)
# Without dots only these are clear; any comment may mention existing code.
_PLAIN = re.compile(
    r"^\(?(?:no changes?(?: (?:before|after|here|needed|required|above|below|in|between|to|this|"
    r"the|line|code|section|file)){0,5}"
    r"|existing code(?: here| unchanged| remains(?: unchanged)?)?"
    r"|(?:the )?(?:rest|remainder) of (?:the |this )?\w+(?: code)?"
    r"(?: (?:is |stays |remains )?(?:unchanged|the same|as before|here))?"
    r"|(?:code |everything )?unchanged(?: code)?|same as (?:before|above))\)?\.?$",
    re.IGNORECASE,
)
_SUSPECT = re.compile(r"\b(existing code|no changes?|rest of (the|this) \w+|unchanged)\b", re.I)
_REASON = re.compile(r"\A#EDIT:[^\n]*(?:\n|\Z)")


class LineKind(Enum):
    """Kind of a line of a draft."""

    TEXT = "text"
    MARKER = "marker"
    DOUBTFUL = "doubtful"


class Draft(NamedTuple):
    """A parsed draft: the blocks of lines between its markers."""

    blocks: list[list[str]]
    doubtful: str | None  # a line that may be a marker

    @property
    def markers(self) -> int:
        """Number of markers."""
        return len(self.blocks) - 1


def line_kind(line: str) -> LineKind:
    """Return the kind of a line of a draft."""
    if len(line) > _MAX_MARKER_CHARS:
        return LineKind.TEXT
    comment = _COMMENT.match(line)
    if comment is None:
        trailing = re.search(r"\S.*(?:#|//|/\*|--)\s*(?:\.{3}|…)\s*(?P<words>.*)", line)
        doubtful = trailing is not None and _STAYS.search(trailing["words"]) is not None
        return LineKind.DOUBTFUL if doubtful else LineKind.TEXT
    text = comment["text"].strip(" \t()[]")
    between = _BETWEEN_DOTS.match(text)
    dotted = between or _LEADING_DOTS.match(text) or _TRAILING_DOTS.match(text)
    if dotted is not None:
        words = dotted["words"].strip(" \t()[]")
        stays = _STAYS.search(words) is not None
        if not words and comment["sign"] == "*":
            return LineKind.DOUBTFUL  # inside a block comment, or a list item
        if not words or (stays and (between or _is_phrase(words))):
            return LineKind.MARKER
        if between or _LEADING_DOTS.match(text) or _SUSPECT.search(words):
            return LineKind.DOUBTFUL
        return LineKind.TEXT
    if _PLAIN.match(text):
        return LineKind.MARKER
    return LineKind.DOUBTFUL if _SUSPECT.search(text) else LineKind.TEXT


def _is_phrase(text: str) -> bool:
    """Return whether a text only says that something is unchanged."""
    words = re.findall(r"\w+", text.lower())
    plain = re.fullmatch(r"[\w\s,:.]*", text) is not None
    return plain and all(_COMPANION.fullmatch(word) or _STAYS.fullmatch(word) for word in words)


def read_draft(text: str, original: list[str]) -> Draft:
    """Parse a draft.

    A first line ``#EDIT: reason`` is dropped. A line that looks like a marker is doubtful if the
    file contains it, since it may be meant literally.

    Args:
        text: The draft.
        original: The lines to merge it into.

    Returns:
        The parsed draft.
    """
    lines = without_reason(text).replace("\r\n", "\n").removesuffix("\n").split("\n")
    present = {line.strip() for line in original}
    blocks: list[list[str]] = [[]]
    doubtful = None
    after_marker = False
    for line in lines:
        kind = line_kind(line)
        if kind is not LineKind.TEXT and line.strip() in present:
            kind = LineKind.TEXT if kind is LineKind.DOUBTFUL else LineKind.DOUBTFUL
        if kind is LineKind.MARKER:
            if not after_marker:  # several in a row are one
                blocks.append([])
        else:
            blocks[-1].append(line)
            if kind is LineKind.DOUBTFUL and doubtful is None:
                doubtful = line
        after_marker = kind is LineKind.MARKER
    if len(blocks) > 1:
        blocks[0] = _without_layout(blocks[0], original[0] if original else None)
        blocks[-1] = _without_layout(blocks[-1], original[-1] if original else None)
    return Draft(blocks, doubtful)


def without_reason(text: str) -> str:
    """Drop a first line ``#EDIT: reason``."""
    return _REASON.sub("", text, count=1)


def _without_layout(block: list[str], end: str | None) -> list[str]:
    """Drop a single blank line between a marker and the end, which is only layout."""
    return [] if block == [""] and end != "" else block


_MERGE = """\
Apply the changes of a draft to a piece of code, and answer with the whole new piece.

- The draft may leave out code: a comment such as `# ... existing code ...` or
  `# no changes before` stands for lines that stay exactly as they are. Put the original lines
  there and no such comment.
- Change nothing that the draft does not change. Delete only what the draft clearly drops.
- Keep the indentation of the original; correct that of the draft where it does not fit.

The piece as it is:
<original_code>
{original}
</original_code>

The draft:
<update_snippet>
{draft}
</update_snippet>

Answer with the new piece between <updated_code> and </updated_code>, with no fence around it
and nothing left out. If you want to say what you did, begin it with one line `#EDIT: reason`.
"""

_REPAIR = """\
A draft was applied to a piece of code, and the result has errors. Correct them, change nothing
else, and answer with the whole corrected piece.

The errors, with line numbers of the whole file; the piece begins at line {first}:
{report}

The draft:
<update_snippet>
{draft}
</update_snippet>

The piece with the errors:
<original_code>
{original}
</original_code>

Answer with the corrected piece between <updated_code> and </updated_code>, with no fence around
it and nothing left out.
"""

_UPDATED = re.compile(r"<updated_code>(.*?)</updated_code>", re.DOTALL)
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)


def merge_prompt(original: str, draft: str) -> str:
    """Return the prompt to merge a draft."""
    return _MERGE.format(original=original, draft=draft)


def updated_code(response: str, original: str) -> str | None:
    """Extract the code from a model's response; None if there is none, or it is abridged."""
    match = _UPDATED.search(response)
    if match is None:
        return None
    code = match[1].replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")
    fence = _FENCE.match(code)
    if fence is not None and not _FENCE.match(original):
        code = fence[1]
    code = without_reason(code)
    present = set(original.split("\n"))
    is_abridged = any(
        line_kind(line) is LineKind.MARKER and line not in present for line in code.split("\n")
    )
    return None if is_abridged else code


_MAX_TRIES = 3  # as in OpenHands
_TIMEOUT_SECONDS = 120.0  # for one response


class DraftModel:
    """Client of the configured model."""

    def __init__(self, settings: Settings) -> None:
        """Store the settings; nothing is imported or connected yet."""
        self._settings = settings
        self.name = settings.draft_model or ""
        self.rounds = settings.draft_correct_num

    @cached_property
    def _client(self) -> OpenAI:
        try:
            from openai import OpenAI, OpenAIError
        except ImportError:
            raise DraftError(
                "The setting draft_model needs the package openai: pip install oh_jupyter[draft]"
            ) from None
        try:
            # The client defaults to OPENAI_BASE_URL and OPENAI_API_KEY.
            return OpenAI(
                base_url=self._settings.draft_base_url,
                api_key=self._settings.draft_api_key or None,
                timeout=_TIMEOUT_SECONDS,
            )
        except OpenAIError as error:
            raise DraftError(
                f"The model {self.name!r} cannot be used: {error} "
                "Check the settings draft_base_url and draft_api_key."
            ) from None

    def ask(self, prompt: str, original: str) -> str:
        """Return the code of the first response that has some."""
        client = self._client
        from openai import OpenAIError

        for _ in range(_MAX_TRIES):
            try:
                completion = client.chat.completions.create(
                    model=self.name, messages=[{"role": "user", "content": prompt}]
                )
            except OpenAIError as error:
                reason = str(error).replace(client.api_key, "***")
                raise DraftError(
                    f"The request to the model {self.name!r} at {client.base_url} failed: {reason}"
                ) from None
            response = completion.choices[0].message.content if completion.choices else None
            code = updated_code(response or "", original)
            if code is not None:
                return code
        raise DraftError(
            "Failed to get new file contents. "
            "Please try to reduce the number of edits and try again."
        )


_PYTHON_SUFFIXES = (".py", ".pyi")
_FINDINGS_HEADING = "Linting issues found"
_MAX_FINDINGS = 5  # as in OpenHands


def check_syntax(path: Path, old: str, new: str) -> str:
    """Return how a merge breaks the syntax of a file, or "" if it does not."""
    if path.suffix.lower() in _PYTHON_SUFFIXES:
        error = None if _syntax_error(old) else _syntax_error(new)
        reason = f"SyntaxError in line {error.lineno or 1}: {error.msg}" if error else ""
    else:
        findings = _report(path, old, new).splitlines()[1:2]
        reason = findings[0].removeprefix("- ") if findings else ""
    return f"With its markers filled in, it would break the file: {reason}." if reason else ""


def _syntax_error(text: str) -> SyntaxError | None:
    try:
        ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or nested too deeply
        return SyntaxError(str(error) or type(error).__name__)
    return None


def repaired(
    model: DraftModel | None,
    path: Path,
    old: str,
    code: list[str],
    *,
    draft: str,
    first: int,
    splice: Callable[[list[str]], str],
    syntax_only: bool = False,
) -> list[str]:
    """Let the model repair its merge in a few rounds; return the code, or raise an error."""
    rounds = model.rounds if model is not None else 0
    while report := _report(path, old, splice(code), syntax_only=syntax_only):
        if model is None or rounds <= 0:
            break
        rounds -= 1
        text = "\n".join(code)
        prompt = _REPAIR.format(original=text, draft=draft, report=report.strip(), first=first)
        code = model.ask(prompt, text).split("\n")
    else:
        return code
    findings = [line for line in report.splitlines() if line.startswith("- ")]
    raise DraftError(
        f"[Linting failed for edited file {path}. {len(findings)} lint errors found.]\n"
        "[begin attempted changes]\n"
        f"{unified_diff(old, splice(code), str(path))}\n"
        "[end attempted changes]\n"
        f"First {_MAX_FINDINGS} lint errors:\n"
        + "\n".join(findings[:_MAX_FINDINGS])
        + f"\nYour changes are NOT applied; {path} is unchanged."
    )


def _report(path: Path, old: str, new: str, *, syntax_only: bool = False) -> str:
    is_python = path.suffix.lower() in _PYTHON_SUFFIXES
    if syntax_only and is_python and (_syntax_error(old) or not _syntax_error(new)):
        return ""
    report = lint_report(path, old, new)
    return report if report.startswith(_FINDINGS_HEADING) else ""
