"""Result of an editor command."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from oh_jupyter.editor.text.line_diff import CONTEXT_LINES, unified_diff


class Part(NamedTuple):
    """Part of an output: what was done, an excerpt of the file, advice, or a note for people."""

    text: str
    kind: Literal["done", "excerpt", "advice", "note"] = "done"


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
        parts: The parts of the output of an edit; empty for others.
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
    parts: list[Part] = field(default_factory=list, repr=False)

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

    def say(self, parts: Iterable[Part]) -> None:
        """Set the output by its parts."""
        self.parts = [part for part in parts if part.text]
        self.output = "".join(part.text for part in self.parts)

    @property
    def around_excerpts(self) -> list[str]:
        """Texts before, between and after the excerpts, without advice; empty without both."""
        texts, follows_advice = [""], False
        for text, kind in self.parts:
            if kind == "excerpt":
                texts.append("")
            elif kind != "advice":
                texts[-1] += text.removeprefix("\n") if follows_advice else text
            follows_advice = kind == "advice"
        return texts if self.parts and texts != [self.output] else []

    @property
    def notes(self) -> list[str]:
        """Lines for people besides the diff: linting, changes by others, inexact patches."""
        text = "\n".join(part.text for part in self.parts if part.kind == "note")
        return [line for line in text.split("\n") if line.strip()]

    def __str__(self) -> str:
        return self.output
