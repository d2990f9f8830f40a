"""Result of an editor command."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, unified_diff


@dataclass
class EditorResult:
    r"""The result of one command. The first six fields are those of OpenHands' editor.

    Attributes:
        output: The text for an agent.
        error: Always None, since failures are raised; part of OpenHands' result.
        path: The file or directory, as passed by the caller.
        prev_exist: Whether it existed before.
        old_content: The text before an edit, with ``\n`` line ends; None without a file.
        new_content: The text after an edit; None without a file, and for views.
        image_urls: Images as data URLs.
        files: For an edit of several files: the result of each changed file.
        dry_run: Whether nothing was written, and this is a preview.
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

    @cached_property
    def diff(self) -> str:
        """Unified diff with three lines of context; "" for a view."""
        return self.diff_with_context(CONTEXT_LINES)

    def diff_with_context(self, context: int) -> str:
        """Compare the old with the new content.

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
