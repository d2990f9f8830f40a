"""Notebooks as cells: validation, edits, views."""

from oh_jupyter.editor.notebook.cells import Notebook

__all__ = ["Notebook"]
