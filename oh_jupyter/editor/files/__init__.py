"""Files on disk: atomic replacement, attributes, locks, path checks."""
