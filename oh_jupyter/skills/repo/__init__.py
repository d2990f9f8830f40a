"""What is where in a repository, and what uses what: the index behind the repository skills."""
