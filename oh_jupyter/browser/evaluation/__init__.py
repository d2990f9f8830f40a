"""Evaluation of agents on tasks: episodes, tasks, BrowserGym, and the runner."""
