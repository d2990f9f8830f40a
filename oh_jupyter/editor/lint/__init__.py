"""Linting: what an edit broke."""
