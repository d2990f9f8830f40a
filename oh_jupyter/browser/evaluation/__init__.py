"""Browser tasks for the evaluation of agents, including BrowserGym's tasks on its own engine."""

from oh_jupyter.browser.evaluation.tasks import TASKS, Task, TaskPage, Verdict

__all__ = ["TASKS", "Task", "TaskPage", "Verdict"]
