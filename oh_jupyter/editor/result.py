"""What an editor command returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from oh_jupyter.editor.differences import unified_diff

__all__ = ["EditorResult"]


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
    """

    output: str
    error: str | None = None
    path: str = ""
    prev_exist: bool = True
    old_content: str | None = field(default=None, repr=False)
    new_content: str | None = field(default=None, repr=False)
    image_urls: list[str] = field(default_factory=list, repr=False)

    @cached_property
    def diff(self) -> str:
        """Unified diff of the file with three lines of context; "" for views."""
        return unified_diff(self.old_content or "", self.new_content or "", self.path, context=3)

    def __str__(self) -> str:
        return self.output
