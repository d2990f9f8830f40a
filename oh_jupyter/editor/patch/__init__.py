"""Patches in the formats that models write: parsing, matching, application."""

from oh_jupyter.editor.patch.formats import parse_patch, split_blocks
from oh_jupyter.editor.patch.model import FilePatch, Hunk

__all__ = ["FilePatch", "Hunk", "parse_patch", "split_blocks"]
