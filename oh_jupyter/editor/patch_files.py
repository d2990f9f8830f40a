"""The command ``apply_patch``: a patch of any number of files, as a whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from oh_jupyter.editor.engine import EditOptions, apply_all, encode_new
from oh_jupyter.editor.files.paths import exists, similar
from oh_jupyter.editor.messages import REVIEW
from oh_jupyter.editor.notebook.cells import Notebook
from oh_jupyter.editor.notebook.edits import NotebookFile, rewrite_listing
from oh_jupyter.editor.notebook.validation import is_notebook
from oh_jupyter.editor.patch import FilePatch
from oh_jupyter.editor.patch.applying import Patched, apply_hunks
from oh_jupyter.editor.patch.formats import parse_patch
from oh_jupyter.editor.result import EditorResult, Part
from oh_jupyter.editor.stage import Stage
from oh_jupyter.editor.state import EditorState
from oh_jupyter.editor.text import TextFile
from oh_jupyter.errors import PatchError
from oh_jupyter.text import plural


def _resolve(root: Path, name: str) -> Path:
    """Resolve a name in a patch; ``root`` is the only file, or the directory of all files."""
    if not root.is_dir():
        parts = PurePosixPath(name).parts
        if parts and root.parts[-len(parts) :] != parts and Path(name) != root:
            raise PatchError(
                f"The patch is for {root}, but changes {name}; nothing was changed. Use the "
                "directory of its files as `path` instead."
            )
        return root
    if not name:
        raise PatchError(
            f"The patch does not name its file, and {root} is a directory; nothing was changed. "
            "Write the file's name above the patch, or use the file as `path`."
        )
    path = Path(os.path.normpath(root / name))
    if not path.is_relative_to(os.path.normpath(root)):
        raise PatchError(
            f"The patch changes {name}, which is not below {root}; nothing was changed. Use a "
            "directory that contains all its files as `path`."
        )
    return path


def patch_files(state: EditorState, path: Path, text: str, options: EditOptions) -> EditorResult:
    """Apply a patch in any format: all of it, or nothing."""
    patches = parse_patch(text)
    names = [n for patch in patches for n in (patch.path, patch.new_path) if n is not None]
    paths = {name: _resolve(path, name) for name in names}

    def build(stage: Stage) -> list[Part]:
        run = _PatchRun(stage, paths, state.max_file_bytes)
        for patch in patches:
            run.stage_patch(patch)
        return run.summary()

    return apply_all(state, paths.values(), build, "apply_patch", path, options)


@dataclass
class _PatchRun:
    """Application of a patch on the stage."""

    stage: Stage
    paths: dict[str, Path]
    max_file_bytes: int
    done: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def stage_patch(self, patch: FilePatch) -> None:
        """Stage the patch of one file, or record why it does not fit."""
        path = self.paths[patch.path]
        where = f"{path} (line {patch.source} of the patch)"
        stage = {"add": self._add, "delete": self._delete, "update": self._update}[patch.action]
        stage(patch, path, where)

    def _add(self, patch: FilePatch, path: Path, where: str) -> None:
        file = self.stage.at(path).text
        if file is None:
            self.stage.put(path, encode_new(path, patch.content, self.max_file_bytes))
            self.stage.at(path).mode = patch.mode
            self.done.append(f"created {path}")
        elif file.text == patch.content.replace("\r\n", "\n"):
            self.unchanged.append(f"{path} exists already, with the same text")
        elif not file.text and patch.content:
            self._put(path, Patched(file.replace(0, 0, patch.content)), where)
        else:
            self.errors.append(
                f"{where}: the file exists already and is not overwritten. Update it, or delete "
                "it first."
            )

    def _delete(self, patch: FilePatch, path: Path, where: str) -> None:
        file = self.stage.at(path).text
        if file is None:
            self.missing.append(f"{path} does not exist")
            return
        patched = apply_hunks(file, patch.hunks)
        if patch.hunks and (patched.errors or patched.data):
            reasons = "; ".join(patched.errors or ["It has more lines."])
            self.errors.append(f"{where}: the file differs from the one to delete. {reasons}")
            return
        self.stage.put(path, None)
        self.done.append(f"deleted {path}")

    def _update(self, patch: FilePatch, path: Path, where: str) -> None:
        target = self.paths[patch.new_path] if patch.new_path is not None else None
        if target is not None and not patch.renamed and self.stage.at(target).text is not None:
            path, target = target, None  # names such as file.orig and file
        staged = self.stage.at(path)
        if staged.text is None:
            self._update_missing(patch, path, target, where)
            return
        if target is not None and target != path and self.stage.at(target).text is not None:
            self.errors.append(
                f"{where}: it cannot be renamed to {target}, which exists already and is not "
                "overwritten."
            )
            return
        patched = _apply(path, staged.text, patch)
        self._put(path, patched, where)
        if patched.errors or target is None or target == path:
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
            if not patched.errors and not patched.applied:
                self.unchanged += [f"{path} is {target} already", *patched.remarks]
                return
        hint = "" if exists(path) else similar(path)
        self.errors.append(f"{where}: the path {path} does not exist.{hint}")

    def _put(self, path: Path, patched: Patched, where: str) -> None:
        """Stage a patched file, or record the errors of its hunks."""
        if patched.errors:
            self.errors += [f"{where}: {error}" for error in patched.errors]
            if patched.applied:
                self.done.append(f"{plural(patched.applied, 'hunk')} of {path}")
            return
        self.stage.put(path, patched.data)
        remarks = f" ({'; '.join(patched.remarks)})" if patched.remarks else ""
        if patched.applied or not patched.remarks:
            self.done.append(f"edited {path}, {plural(max(patched.applied, 1), 'place')}{remarks}")
        else:
            self.unchanged.append(f"{path}{remarks}")

    def summary(self) -> list[Part]:
        """Describe what was done; raise an error if any part does not fit."""
        if self.done or self.errors:
            self.errors += [f"{reason}, and cannot be deleted." for reason in self.missing]
        else:
            self.unchanged += self.missing
        if self.errors:
            text = (
                "The patch was not applied, and nothing was changed: "
                f"{plural(len(self.errors), 'part')} of it did not fit.\n{_listed(self.errors)}"
            )
            if self.done:
                text += f"These parts fit and can stay as they are:\n{_listed(self.done)}"
            raise PatchError(text.rstrip("\n"))
        if not self.done:
            before = "The patch was applied before; nothing was written.\n"
            return [Part(before), Part(_listed(self.unchanged), "note")]
        unchanged = [f"{note}: nothing to do" for note in self.unchanged]
        listed = Part(_listed(self.done + unchanged), "note")
        return [Part("The patch was applied.\n"), listed, Part(REVIEW, "advice")]


def _apply(path: Path, file: TextFile, patch: FilePatch) -> Patched:
    """Apply the hunks to a file; to the cells of a notebook, or else to its JSON."""
    notebook = Notebook.parse(file.text) if is_notebook(path) else None
    if notebook is None or not patch.hunks:
        return apply_hunks(file, patch.hunks)
    cells = apply_hunks(notebook.listing_file(), patch.hunks)
    if cells.errors:
        as_json = apply_hunks(file, patch.hunks)
        return cells if as_json.errors else as_json
    changed = cells.data.decode("utf-8", "surrogatepass")
    edit = rewrite_listing(NotebookFile(path, file, notebook), changed)
    if edit is None:
        return replace(cells, data=file.data)
    note = edit[1].strip().removesuffix(".")
    return replace(cells, data=edit[0].data, remarks=[*cells.remarks, *([note] if note else [])])


def _listed(items: Sequence[str]) -> str:
    return "".join(f"- {item}\n" for item in items)
