"""Patches in the formats that models write, through the engine of the other edits."""

from oh_jupyter.editor.patch.formats import parse_patch
from oh_jupyter.editor.patch.model import FilePatch, Hunk
from oh_jupyter.editor.patch_files import patch_files

__all__ = ["FilePatch", "Hunk", "parse_patch", "patch_files"]
