"""Files on disk: atomic replacement, attributes, path validation."""
