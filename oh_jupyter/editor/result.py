"""Result of an editor command."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, unified_diff


@dataclass
class EditorResult:
    r"""The outcome of one command. The first six fields are those of OpenHands' editor.

    Attributes:
        output: What an agent reads.
        error: Why it failed; None in a result that was returned, as failures are raised.
        path: The file or directory, as it was given.
        prev_exist: Whether it existed before.
        old_content: The text before an edit, with ``\n`` line ends; None where nothing was.
        new_content: The text after an edit; None where nothing is, and for views.
        image_urls: Images as data URLs.
        files: Of an edit of several files: the result of each that was changed.
        dry_run: Whether the file was left as it is, and only what would be is told.
    """

    output: str
    error: str | None = None
    path: str = ""
    prev_exist: bool = True
    old_content: str | None = field(default=None, repr=False)
    new_content: str | None = field(default=None, repr=False)
    image_urls: list[str] = field(default_factory=list, repr=False)
    dry_run: bool = field(default=False, repr=False)
    files: list[EditorResult] = field(default_factory=list, repr=False)

    @classmethod
    def of_change(
        cls, output: str, path: Path, old: str | None, new: str | None, *, dry_run: bool
    ) -> EditorResult:
        """Result for a file with these texts; None where it is not there."""
        existed = old is not None
        return cls(output, None, str(path), existed, old, new, dry_run=dry_run)

    @cached_property
    def diff(self) -> str:
        """Unified diff with three lines of context; "" for views."""
        return self.diff_with_context(CONTEXT_LINES)

    def diff_with_context(self, context: int) -> str:
        """Compare what was with what is.

        Args:
            context: Unchanged lines around each change.

        Returns:
            A unified diff of all files; "" if nothing changed.
        """
        if self.files:
            diffs = (file.diff_with_context(context) for file in self.files)
            return "\n".join(diff for diff in diffs if diff)
        return unified_diff(self.old_content or "", self.new_content or "", self.path, context)

    def __str__(self) -> str:
        return self.output
