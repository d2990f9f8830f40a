"""Text files: exact bytes, edits, differences, views."""
