"""Prompts for the model that merges drafts, and the parser of its replies."""

from __future__ import annotations

import re

from oh_jupyter.editor.draft.markers import LineKind, line_kind, without_reason

__all__ = ["merge_prompt", "repair_prompt", "updated_code"]

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
    """Prompt to merge a draft."""
    return _MERGE.format(original=original, draft=draft)


def repair_prompt(code: str, draft: str, report: str, first: int) -> str:
    """Prompt to correct a merged draft."""
    return _REPAIR.format(original=code, draft=draft, report=report.strip(), first=first)


def updated_code(reply: str, original: str) -> str | None:
    """Code in a model's reply; None if there is none, or lines are left out.

    The newlines right inside the tags belong to the tags, not to the code. A fence around
    all of the code is taken off, unless the original has one.
    """
    found = _UPDATED.search(reply)
    if found is None:
        return None
    code = found[1].replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")
    fence = _FENCE.match(code)
    if fence is not None and not _FENCE.match(original):
        code = fence[1]
    code = without_reason(code)
    present = set(original.split("\n"))
    left_out = any(
        line_kind(line) is LineKind.MARKER and line not in present for line in code.split("\n")
    )
    return None if left_out else code
