"""Notebooks as cells: validation, edits, views."""
