"""The edit history on disk, and multi-file commits."""
