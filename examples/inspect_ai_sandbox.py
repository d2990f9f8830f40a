"""An evaluation of Inspect AI whose samples run on an open notebook's machine.

Start JupyterLab with ``oh_jupyter``, open a notebook, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    pip install "oh_jupyter[inspect-ai]"
    python inspect_ai_sandbox.py                    # steps from a script instead of a model
    inspect eval inspect_ai_sandbox.py --model openai/gpt-5
"""

from __future__ import annotations

from inspect_ai import Task, eval, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash

__all__ = ["file_probe", "main"]


@task
def file_probe() -> Task:
    """Ask for a file that the sample brings along."""
    sample = Sample(
        input='Is there a file named "hello.txt" in the current directory?',
        target="Yes",
        files={"hello.txt": "hello"},
    )
    return Task(
        dataset=[sample],
        solver=[use_tools(bash(timeout=60)), generate()],
        scorer=includes(),
        sandbox="oh_jupyter",
    )


def main(log_dir: str = "logs") -> str:
    """Run the evaluation with a scripted model; return its conversation."""
    script = [
        ModelOutput.for_tool_call("mockllm", "bash", {"command": "ls"}),
        ModelOutput.from_content("mockllm", "Yes, there is."),
    ]
    for output in script:
        output.usage = ModelUsage()  # otherwise Inspect downloads a tokenizer to count them
    model = get_model("mockllm/model", custom_outputs=script)
    (log,) = eval(file_probe(), model=model, log_dir=log_dir, display="none")
    if log.status != "success" or not log.samples:
        raise SystemExit(f"The evaluation failed: {log.error and log.error.message}")
    (sample,) = log.samples
    lines = [f"{message.role}: {message.text.strip()}" for message in sample.messages]
    return "\n".join([*lines, f"score: {(sample.scores or {})['includes'].value}"])


if __name__ == "__main__":
    print(main())
