"""Evaluation of agents: episodes in processes of their own, on one machine or many."""

from oh_jupyter.evaluation.episode import AgentLabAgent, EpisodeLog, Outcome, PlayedTask, Trial
from oh_jupyter.evaluation.repository_task import RepositoryTask, load_instances
from oh_jupyter.evaluation.results import Results, TaskSummary, plot_success, summarize
from oh_jupyter.evaluation.runner import run_trials

__all__ = [
    "AgentLabAgent",
    "EpisodeLog",
    "Outcome",
    "PlayedTask",
    "RepositoryTask",
    "Results",
    "TaskSummary",
    "Trial",
    "load_instances",
    "plot_success",
    "run_trials",
    "summarize",
]
