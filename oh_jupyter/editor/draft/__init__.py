"""Draft edits: an agent shows what changes and leaves out what does not."""

from oh_jupyter.editor.draft.edit import edit_by_draft
from oh_jupyter.editor.draft.merge import Merged, Refused, merge
from oh_jupyter.editor.draft.model import read_draft

__all__ = ["Merged", "Refused", "edit_by_draft", "merge", "read_draft"]
