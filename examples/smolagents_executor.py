"""A code agent of smolagents in an open notebook, on its variables.

Start JupyterLab with ``oh_jupyter``, open a notebook, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    pip install "oh_jupyter[smolagents]"
    python smolagents_executor.py                   # steps from a script instead of a model
    python smolagents_executor.py Qwen/Qwen3-Coder-480B-A35B-Instruct "Which columns has df?"
"""

from __future__ import annotations

import sys
from typing import Any

from smolagents import CodeAgent, InferenceClientModel, Model
from smolagents.models import ChatMessage

from oh_jupyter.adapters.smolagents import OhExecutor

__all__ = ["main"]


class ScriptedModel(Model):  # type: ignore[misc]
    """A model that answers with the cells of a script."""

    def __init__(self) -> None:
        """Prepare the cells."""
        super().__init__(model_id="scripted")
        self._cells = iter(
            ["rows = list(range(42))\nlen(rows)", 'final_answer(f"{len(rows)} rows")']
        )

    def generate(self, messages: list[Any], **options: Any) -> ChatMessage:
        """Return the next cell."""
        return ChatMessage("assistant", f"Thought: go on\n<code>\n{next(self._cells)}\n</code>")


def main(model: str = "", task: str = "Make some rows, and count them.") -> Any:
    """Run an agent on a task; return its answer."""
    chosen = InferenceClientModel(model) if model else ScriptedModel()
    with CodeAgent(tools=[], model=chosen, executor=OhExecutor()) as agent:
        return agent.run(task)


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
