"""Rules for the files that agents use: what they may change unasked, and what is asked about."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from oh_jupyter.config import Settings
from oh_jupyter.containment import is_within
from oh_jupyter.errors import NotApprovedError
from oh_jupyter.events import FileReadAction, FileWriteAction
from oh_jupyter.runs_when import runs_when
from oh_jupyter.runtime.boxed_shells import BoxedShells
from oh_jupyter.runtime.confinement import confinement_fault
from oh_jupyter.runtime.effects import Effects, effects, outside_of
from oh_jupyter.runtime.reasons import Reason
from oh_jupyter.runtime.risk import risks
from oh_jupyter.sandbox.profile import is_protected

if TYPE_CHECKING:
    from oh_jupyter.editor.files.path_guard import PathGuard

MAX_NAMED_FILES = 10
"""Maximum number of files that a question about a request names."""

MAX_JUDGED_ACTIONS = 2000
"""Maximum number of files that are looked at one by one; a person is asked about more."""

FileUse = FileReadAction | FileWriteAction
"""Use of one file, as the Action that does the same."""


class FileRules:
    """Rules of a runtime, from its settings and its sandboxes."""

    def __init__(
        self, workspace_dir: str, settings: Callable[[], Settings], boxes: BoxedShells
    ) -> None:
        self._workspace_dir = workspace_dir
        self._settings = settings
        self._boxes = boxes
        self._temporary: set[str] = set()

    @property
    def roots(self) -> list[str]:
        """The files and directories that agents may change."""
        settings = self._settings()
        named = [*settings.sandbox_writable, *settings.agent_directories]
        more = [os.path.join(self._workspace_dir, os.path.expanduser(each)) for each in named]
        return [self._workspace_dir, *sorted(self._temporary), *more]

    def note_new_temporary(self, known: Effects) -> None:
        """Add what an Action makes in the directory for temporary files to what agents may change.

        What is there already belongs to other programs.
        """
        top = os.path.realpath(tempfile.gettempdir())
        for real in (each for path in known.writes for each in known.real[path]):
            if real != top and is_within(real, top):
                entry = os.path.join(top, os.path.relpath(real, top).split(os.sep)[0])
                if not os.path.lexists(entry):
                    self._temporary.add(entry)

    def guard(self, known: Effects, within: str | None, *, asks: bool, confined: bool) -> PathGuard:
        """Return the files that an Action may use: the judged ones, and harmless ones.

        Args:
            known: The effects that were judged.
            within: Directory that its changes must not leave, if it is limited to one.
            asks: Whether a person is asked about agents' Actions.
            confined: Whether it may use only the workspace's files.
        """
        from oh_jupyter.editor.files.path_guard import PathGuard

        judged = {real for reals in known.real.values() for real in reals}
        roots = [self._workspace_dir] if confined else self.roots
        limits = (self._boxes.is_on and asks) or confined
        rules = self._boxes.visibility() if limits else None
        limit, workspace = None, os.path.realpath(self._workspace_dir)
        if within is not None:
            limit = os.path.realpath(os.path.join(self._workspace_dir, within))

        def may_read(real: str) -> bool:
            if real in judged:
                return True
            is_hidden = rules is not None and rules.hides(real)
            return not (is_hidden or (confined and any(outside_of([real], roots))))

        def may_write(real: str) -> bool:
            if limit is not None and not is_within(real, limit):
                return False
            if real in judged:
                return True
            is_risky = rules is not None and (rules.hides(real) or is_protected(real))
            is_risky = is_risky or (confined and runs_when(real, workspace) is not None)
            is_elsewhere = (asks or confined) and any(outside_of([real], roots))
            return not (is_risky or is_elsewhere)

        return PathGuard(may_read, may_write)

    def page_files(self, known: Effects, *, is_persons: bool) -> dict[str, Any] | None:
        """Return the limits of the files that pages load; None if no sandbox hides any.

        Args:
            known: The effects that were judged.
            is_persons: Whether a person opens the pages.
        """
        if not self._boxes.is_on:
            return None
        opened = sorted(real for path in known.reads for real in known.real[path])
        rules = asdict(self._boxes.visibility())
        return {"rules": rules, "opened": opened, "is_persons": is_persons}

    def check_confined(self, uses: Sequence[FileUse], cwd: str) -> None:
        """Raise NotApprovedError unless an agent that may not run code may use all of the files."""
        hides = self._boxes.visibility().hides
        for action in uses:
            known = effects(action, cwd)
            if fault := confinement_fault(action, known, self._workspace_dir, hides):
                raise NotApprovedError(fault)

    def questions(self, uses: Sequence[FileUse], cwd: str) -> list[Reason]:
        """Return the reasons to ask about files, after the paths that they are about."""
        if len(uses) > MAX_JUDGED_ACTIONS:
            return [Reason("uses_files", (str(len(uses)),))]
        asked: list[Reason] = []
        reasons: list[Reason] = []
        contained = self._boxes.contains(is_boxed=False)
        for action in uses:
            known = effects(action, cwd)
            self.note_new_temporary(known)
            own = self._boxes.questions(action, known)
            if not contained:
                own += risks(action, self._workspace_dir, effects=known, roots=self.roots)
            reasons += own
            if own:
                asked.append(use_of(action))
        rest = Reason("uses_such_files", (str(len(asked)),))
        more = [rest] if len(asked) > MAX_NAMED_FILES else []
        return [*asked[:MAX_NAMED_FILES], *more, *reasons]


def use_of(action: FileUse) -> Reason:
    """Return the reason that names a file."""
    is_read = isinstance(action, FileReadAction)
    return Reason("reads_file" if is_read else "writes_file", (action.path,))
