"""The command ``oh-jupyter``."""

from oh_jupyter.cli.program import main

__all__ = ["main"]
