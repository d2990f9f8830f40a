"""The one owner of all state: an ActionExecutor on a thread of its own."""

from oh_jupyter.runtime.executor import ActionExecutor
from oh_jupyter.runtime.file_rules import list_directory
from oh_jupyter.runtime.runtime import Runtime, RuntimeThread

__all__ = ["ActionExecutor", "Runtime", "RuntimeThread", "list_directory"]
