"""An agent of the OpenAI Agents SDK in an open notebook.

Start JupyterLab with ``oh_jupyter``, open a notebook, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    pip install "oh_jupyter[openai-agents]"
    python openai_agents_workspace.py               # steps from a script instead of a model
    python openai_agents_workspace.py gpt-5.1 "Which columns has df?"
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call

from oh_jupyter.adapters.openai_agents import OhWorkspace

__all__ = ["main"]


def scripted() -> ScriptedModel:
    """Return a model that writes a program, changes it, runs it, and runs a cell."""
    create = {"type": "create_file", "path": "greet.py", "diff": '+print("hello")\n'}
    update = {
        "type": "update_file",
        "path": "greet.py",
        "diff": '@@\n-print("hello")\n+print("hello, you")\n',
    }
    commands = {"commands": ["python3 greet.py"], "timeout_ms": 60_000, "max_output_length": None}
    ended: dict[str, Any] = {"status": "completed"}
    calls: list[Any] = [
        {"type": "apply_patch_call", "id": "a", "call_id": "1", "operation": create} | ended,
        {"type": "apply_patch_call", "id": "b", "call_id": "2", "operation": update} | ended,
        {"type": "shell_call", "id": "c", "call_id": "3", "action": commands} | ended,
        function_call("run_python", {"code": "len(open('greet.py').read())"}, call_id="4"),
    ]
    return ScriptedModel([*([call] for call in calls), [assistant_message("It greets you.")]])


def main(model: Any = None, task: str = "Write a program that greets me.") -> str:
    """Run an agent on a task; return the results of its tools and its answer."""
    with OhWorkspace() as workspace:
        agent = Agent(name="coder", model=model or scripted(), tools=workspace.tools())
        options = RunConfig(tracing_disabled=True)
        result = asyncio.run(Runner.run(agent, task, run_config=options))
    outputs = [getattr(item, "output", None) for item in result.new_items]
    return "\n".join([*(str(each) for each in outputs if each), str(result.final_output)])


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))
