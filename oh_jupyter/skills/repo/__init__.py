"""Index of a repository's entities and dependencies, for the repository skills."""
