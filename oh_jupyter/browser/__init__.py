"""A browser for agents and people: BrowserGym's action language on Playwright's engine."""

from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.browser.tree_text import flatten_axtree

__all__ = ["BrowserEnv", "flatten_axtree"]
