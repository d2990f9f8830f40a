"""Several commands as one edit: all of them are carried out, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

from oh_jupyter.editor.engine import stage_command
from oh_jupyter.editor.messages import REVIEW, invalid, plural
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.text.commands import Command, NewFile
from oh_jupyter.errors import EditorError

__all__ = ["Transaction", "check_edits", "combine"]


def combine(commands: list[Command | NewFile]) -> Callable[[Stage], str]:
    """Make one edit of several commands, carried out in their order."""

    def build(stage: Stage) -> str:
        said = []
        for number, command in enumerate(commands, 1):
            try:
                text, note = stage_command(stage, command)
            except EditorError as error:
                if len(commands) == 1:
                    raise
                raise type(error)(
                    f"{error}\nThis is edit {number} of {len(commands)} ({command.name} in "
                    f"{command.path}); nothing was changed, by none of them."
                ) from None
            said.append(text + note.lstrip())
        count = plural(len({command.path for command in commands}), "file")
        return (
            f"{plural(len(commands), 'edit')} of {count} made together, as one step.\n"
            + "".join(text if text.endswith("\n") else text + "\n" for text in said)
            + REVIEW
        )

    return build


class Transaction:
    """Collects edits; the end of the ``with`` block makes all of them, or none.

    Call it like the editor itself. Every edit is checked when it is given, on the files
    as the edits before it leave them. If the block is left by an error, nothing is done.

    Attributes:
        result: What was done; None before the end of the block.
    """

    def __init__(
        self,
        stage: Stage,
        parse: Callable[[Mapping[str, Any]], Command | NewFile],
        make: Callable[[list[Mapping[str, Any]]], EditorResult],
    ) -> None:
        """Begin with no edits; ``make`` carries out those that ``parse`` accepted."""
        self._stage = stage
        self._parse = parse
        self._make = make
        self._edits: list[Mapping[str, Any]] = []
        self.result: EditorResult | None = None

    def __call__(self, **edit: Any) -> EditorResult:
        """Add an edit.

        Args:
            **edit: The arguments of the editor for one command that changes a file.

        Returns:
            What it is going to do.

        Raises:
            EditorError: It was refused; the edits before it are still there.
        """
        command = self._parse(edit)
        said, note = stage_command(self._stage, command)
        self._edits.append(edit)
        return replace(self._stage.at(command.path).result(dry_run=True), output=said + note)

    def __enter__(self) -> Transaction:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Make all edits, unless the block failed."""
        if kind is None and self._edits:
            self.result = self._make(self._edits)


def check_edits(edits: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Check that edits are a list of arguments."""
    given = [edits] if isinstance(edits, str | bytes | Mapping) else list(edits)
    if not given or not all(isinstance(edit, Mapping) for edit in given) or given == [edits]:
        raise invalid(
            "edits",
            edits,
            "It should be a list of dicts, each with the arguments of one command.",
        )
    return given
