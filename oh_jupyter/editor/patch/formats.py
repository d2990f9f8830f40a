"""Detection of the format of a patch."""

from __future__ import annotations

from collections.abc import Callable

from oh_jupyter.editor.patch.blocks import SEARCH, parse_blocks
from oh_jupyter.editor.patch.envelope import BEGIN, parse_envelope
from oh_jupyter.editor.patch.model import FilePatch
from oh_jupyter.editor.patch.unified import STARTS, parse_unified
from oh_jupyter.errors import PatchError

__all__ = ["parse_patch"]


def parse_patch(text: str) -> list[FilePatch]:
    """Patches of a text in any of the formats; what stands around it is skipped."""
    reader = _reader(text)
    patches = reader(text) if reader is not None else []
    if not patches:
        raise PatchError(
            "The patch is in no format that is known here; nothing was changed. Write blocks of "
            "<<<<<<< SEARCH, =======, >>>>>>> REPLACE (with the file's name above each), or a "
            "unified diff, or *** Begin Patch ... *** End Patch."
        )
    return patches


def _reader(text: str) -> Callable[[str], list[FilePatch]] | None:
    """Choose by the first line that begins a patch; it may hold a patch of another format."""
    diff = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped == BEGIN:
            return parse_envelope
        if SEARCH.match(stripped) and not diff:
            return parse_blocks
        diff = diff or STARTS.match(line) is not None
    return parse_unified if diff else None
