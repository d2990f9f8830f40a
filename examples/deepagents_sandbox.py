"""A deep agent of LangChain in an open notebook's workspace.

Start JupyterLab with ``oh_jupyter``, open a notebook, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    pip install "oh_jupyter[deepagents]"
    python deepagents_sandbox.py                    # steps from a script instead of a model
    python deepagents_sandbox.py openai:gpt-5 "Tidy up data/"
"""

from __future__ import annotations

import sys
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from oh_jupyter.adapters.deepagents import OhSandbox

__all__ = ["main"]


class ScriptedModel(GenericFakeChatModel):
    """A model that makes the calls of a script."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        """Accept tools."""
        return self


def scripted(directory: str) -> ScriptedModel:
    """Return a model that writes a program, changes it and runs it."""
    path = f"{directory}/greet.py"
    calls = [
        ("write_file", {"file_path": path, "content": 'print("hello")\n'}),
        ("edit_file", {"file_path": path, "old_string": "hello", "new_string": "hello, you"}),
        ("execute", {"command": f"python3 {path}"}),
    ]
    messages = [
        AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(number)}])
        for number, (name, args) in enumerate(calls)
    ]
    return ScriptedModel(messages=iter([*messages, AIMessage("It greets you.")]))


def main(model: Any = None, task: str = "Write a program that greets me.") -> str:
    """Run an agent on a task; return the conversation."""
    with OhSandbox() as sandbox:
        directory = sandbox.execute("pwd").output.strip()
        agent = create_deep_agent(model=model or scripted(directory), backend=sandbox)
        result = agent.invoke({"messages": [{"role": "user", "content": task}]})
    return "\n".join(f"{message.type}: {message.text}" for message in result["messages"])


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
