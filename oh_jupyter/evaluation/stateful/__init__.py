"""Stateful tasks: data work over several prompts that go back, change their mind, and suppose."""

from oh_jupyter.evaluation.stateful.script import ScriptedAgent
from oh_jupyter.evaluation.stateful.task import PREFIX, StatefulTask, Turn, match_stateful_tasks

__all__ = ["PREFIX", "ScriptedAgent", "StatefulTask", "Turn", "match_stateful_tasks"]
