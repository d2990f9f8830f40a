"""What is where in a repository, and what uses what: the index behind the repository skills."""

from oh_jupyter.skills.repo.graph import Graph, Node, repository

__all__ = ["Graph", "Node", "repository"]
