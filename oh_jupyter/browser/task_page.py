"""The page of a task, reached through a BrowserEnv."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oh_jupyter.browser.evaluation.tasks import TaskPage

if TYPE_CHECKING:
    from oh_jupyter.browser.env import BrowserEnv

__all__ = ["EnvTaskPage"]


class EnvTaskPage(TaskPage):
    """Does what a task asks of its page."""

    def __init__(self, env: BrowserEnv) -> None:
        self._env = env

    def goto(self, url: str) -> None:
        """Open an address."""
        self._env._request("load", url=url)

    def set_content(self, html: str) -> None:
        """Show a page of one's own."""
        self._env._request("load", html=html)

    def evaluate(self, expression: str, argument: Any = None) -> Any:
        """Evaluate JavaScript."""
        return self._env.evaluate(expression, argument)

    @property
    def url(self) -> str:
        """The address."""
        return str(self.evaluate("location.href"))

    @property
    def text(self) -> str:
        """What is to be read."""
        return str(self.evaluate("document.documentElement.innerText"))
