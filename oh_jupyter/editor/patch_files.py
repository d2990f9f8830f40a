"""The command ``apply_patch``: a patch of any number of files, as a whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from oh_jupyter.editor.engine import apply_all, encode_new
from oh_jupyter.editor.files.paths import exists, similar
from oh_jupyter.editor.messages import REVIEW, plural
from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import Document, rewrite_listing
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.patch import FilePatch
from oh_jupyter.editor.patch.applying import Patched, apply_hunks
from oh_jupyter.editor.patch.formats import parse_patch
from oh_jupyter.editor.result import EditorResult
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.state import EditorState
from oh_jupyter.editor.text import TextFile
from oh_jupyter.editor.text.encoding import UTF8
from oh_jupyter.errors import PatchError


class PatchPaths:
    """Resolver of the names in a patch, below one directory or for one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._single = not path.is_dir()

    def find(self, name: str) -> Path:
        """Absolute path of a name; "" is the only file. Names outside the directory are refused."""
        if self._single:
            parts = PurePosixPath(name).parts
            if parts and self._path.parts[-len(parts) :] != parts and Path(name) != self._path:
                raise PatchError(
                    f"The patch is for {self._path}, but changes {name}; nothing was changed. "
                    "Give the directory of its files as `path` instead."
                )
            return self._path
        if not name:
            raise PatchError(
                f"The patch does not name its file, and {self._path} is a directory; nothing was "
                "changed. Write the name above it, or give the file as `path`."
            )
        path = Path(os.path.normpath(self._path / name))
        if not path.is_relative_to(os.path.normpath(self._path)):
            raise PatchError(
                f"The patch changes {name}, which is not below {self._path}; nothing was changed. "
                "Give a directory as `path` that all its files are in."
            )
        return path


def patch_files(
    state: EditorState, path: Path, text: str, *, linting: bool = False, dry_run: bool = False
) -> EditorResult:
    """Apply a patch in any format: all of it, or nothing."""
    patches = parse_patch(text)
    names = PatchPaths(path)
    concerned = [
        names.find(name)
        for patch in patches
        for name in (patch.path, patch.new_path)
        if name is not None
    ]

    def build(stage: Stage) -> str:
        work = _PatchRun(stage, names, state.max_file_bytes)
        for patch in patches:
            work.carry_out(patch)
        return work.conclusion()

    return apply_all(
        state,
        concerned,
        build,
        command="apply_patch",
        path=path,
        linting=linting,
        dry_run=dry_run,
    )


@dataclass
class _PatchRun:
    """A patch while it is carried out on the stage."""

    stage: Stage
    names: PatchPaths
    max_file_bytes: int
    done: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def carry_out(self, patch: FilePatch) -> None:
        """Stage the patch of one file, or note why not."""
        path = self.names.find(patch.path)
        where = f"{path} (line {patch.source} of the patch)"
        if patch.action == "add":
            self._add(patch, path, where)
        elif patch.action == "delete":
            self._delete(patch, path, where)
        else:
            self._update(patch, path, where)

    def _add(self, patch: FilePatch, path: Path, where: str) -> None:
        file = self.stage.at(path).text
        if file is None:
            self.stage.put(path, encode_new(path, patch.content, self.max_file_bytes))
            self.stage.at(path).mode = patch.mode
            self.done.append(f"created {path}")
        elif file.text == patch.content.replace("\r\n", "\n"):
            self.before.append(f"{path} is there already, with the same text")
        elif not file.text and patch.content:
            patched = Patched(file.replace(0, 0, patch.content))
            self._put(path, patched, 1, where)
        else:
            self.problems.append(
                f"{where}: the file exists already, and is not overwritten. Update it, or delete "
                "it first."
            )

    def _delete(self, patch: FilePatch, path: Path, where: str) -> None:
        file = self.stage.at(path).text
        if file is None:
            self.missing.append(f"{path} is not there")
            return
        patched = apply_hunks(file, patch.hunks)
        if patch.hunks and (patched.problems or patched.data):
            self.problems.append(
                f"{where}: the file is not the one that the patch deletes. "
                + "; ".join(patched.problems or ["It has more lines."])
            )
            return
        self.stage.put(path, None)
        self.done.append(f"deleted {path}")

    def _update(self, patch: FilePatch, path: Path, where: str) -> None:
        target = self.names.find(patch.new_path) if patch.new_path is not None else None
        if target is not None and not patch.renamed and self.stage.at(target).text is not None:
            path, target = target, None  # names such as file.orig and file
        staged = self.stage.at(path)
        if staged.text is None:
            self._update_missing(patch, path, target, where)
            return
        if target is not None and target != path and self.stage.at(target).text is not None:
            self.problems.append(
                f"{where}: it cannot be renamed to {target}, which exists already; it is not "
                "overwritten."
            )
            return
        patched = _apply(path, staged.text, patch)
        self._put(path, patched, len(patch.hunks), where)
        if patched.problems or target is None or target == path:
            return
        data, mode = self.stage.at(path).text, staged.permissions
        assert data is not None
        self.stage.put(path, None)
        self.stage.put(target, data.data)
        self.stage.at(target).mode = mode
        self.done.append(f"renamed {path} to {target}")

    def _update_missing(
        self, patch: FilePatch, path: Path, target: Path | None, where: str
    ) -> None:
        file = self.stage.at(target).text if target is not None else None
        if file is not None:
            patched = apply_hunks(file, patch.hunks)
            if not patched.problems and not patched.applied:
                self.before.append(f"{path} is {target} already")
                self.before += patched.remarks
                return
        hint = "" if exists(path) else similar(path)
        self.problems.append(f"{where}: the path {path} does not exist.{hint}")

    def _put(self, path: Path, patched: Patched, count: int, where: str) -> None:
        """Keep what hunks made of a file."""
        if patched.problems:
            self.problems += [f"{where}: {problem}" for problem in patched.problems]
            if patched.applied:
                self.done.append(f"{plural(patched.applied, 'hunk')} of {path}")
            return
        self.stage.put(path, patched.data)
        remarks = f" ({'; '.join(patched.remarks)})" if patched.remarks else ""
        if patched.applied or not patched.remarks:
            self.done.append(f"edited {path}, {plural(max(patched.applied, 1), 'place')}{remarks}")
        else:
            self.before.append(f"{path}{remarks}")

    def conclusion(self) -> str:
        """What was done; refuses everything if anything does not fit."""
        if self.done or self.problems:
            self.problems += [f"{problem}, and cannot be deleted." for problem in self.missing]
        else:
            self.before += self.missing
        if self.problems:
            raise PatchError(_failure(self.problems, self.done))
        if not self.done:
            return "The patch was applied before; nothing was written.\n" + _listed(self.before)
        before = [f"{note}: nothing to do" for note in self.before]
        return f"The patch was applied.\n{_listed(self.done + before)}{REVIEW}"


def _apply(path: Path, file: TextFile, patch: FilePatch) -> Patched:
    """Apply the hunks to a file; to the cells of a notebook, or else to its JSON."""
    notebook = Notebook.parse(file.text) if is_notebook(path) else None
    if notebook is None or not patch.hunks:
        return apply_hunks(file, patch.hunks)
    listing = TextFile(notebook.listing().encode("utf-8", "surrogatepass"), UTF8)
    cells = apply_hunks(listing, patch.hunks)
    if cells.problems:
        as_json = apply_hunks(file, patch.hunks)
        return cells if as_json.problems else as_json
    changed = cells.data.decode("utf-8", "surrogatepass")
    edit = rewrite_listing(Document(path, file, notebook), changed)
    if edit is None:
        return replace(cells, data=file.data)
    note = edit[1].strip().removesuffix(".")
    return replace(cells, data=edit[0].data, remarks=[*cells.remarks, *([note] if note else [])])


def _listed(items: Sequence[str]) -> str:
    return "".join(f"- {item}\n" for item in items)


def _failure(problems: Sequence[str], fits: Sequence[str]) -> str:
    text = (
        "The patch was not applied, and nothing was changed: "
        f"{plural(len(problems), 'part')} of it did not fit.\n{_listed(problems)}"
    )
    if fits:
        text += f"What does fit, and need not be changed:\n{_listed(fits)}"
    return text.rstrip("\n")
