"""Evaluation of agents on tasks: tasks, episodes, and BrowserGym's tasks in its own engine."""

from oh_jupyter.browser.evaluation.tasks import TASKS, Task, TaskPage, Verdict

__all__ = ["TASKS", "Task", "TaskPage", "Verdict"]
