"""The edit history on disk, and atomic commits of several files."""
