"""mini-swe-agent on a Jupyter kernel: its ``Environment`` over ``RuntimeClient``.

Each command runs on the kernel's machine, in a shell of its own as the agent expects; it stands in
the kernel's log, and waits for your approval where you asked for that. Start JupyterLab with
``oh_jupyter``, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    export PYTHONPATH=/path/to/oh_jupyter/examples
    mini --environment-class mini_swe_agent_environment.KernelEnvironment -t "Tidy up data/"
"""

from __future__ import annotations

import os
import shlex
from typing import Any

from minisweagent.exceptions import Submitted
from pydantic import BaseModel

from oh_jupyter.client import RuntimeClient
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.events import CmdOutputObservation, Observation

__all__ = ["KernelEnvironment", "KernelEnvironmentConfig"]

SUBMISSION = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""First line of the output of the command by which the agent ends its work."""


class KernelEnvironmentConfig(BaseModel):
    """Where the commands run; ``timeout`` is in seconds."""

    url: str = ""
    kernel_id: str | None = None
    cwd: str = ""
    env: dict[str, str] = {}
    timeout: int = 60


class KernelEnvironment:
    """Runs the agent's commands beside a kernel."""

    def __init__(self, *, token: str | None = None, **config: Any) -> None:
        """Take the address from the configuration, or from OH_URL and OH_TOKEN."""
        self.config = KernelEnvironmentConfig(**config)
        self.config.url = self.config.url or os.environ["OH_URL"]
        token = os.environ.get("OH_TOKEN", "") if token is None else token
        self._runtime = RuntimeClient(self.config.url, token, self.config.kernel_id)
        self._system = self._run("uname -s; uname -r; uname -v; uname -m", "", 60).content

    def _run(self, command: str, cwd: str, timeout: int) -> Observation:
        exports = "".join(
            f"export {name}={shlex.quote(value)}; " for name, value in self.config.env.items()
        )
        directory = cwd or self.config.cwd or None
        return self._runtime.run(f"({exports}{command}\n)", timeout, is_static=True, cwd=directory)

    def execute(
        self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None
    ) -> dict[str, Any]:
        """Run a command; ``Submitted`` if it is the one that ends the work."""
        limit = timeout or self.config.timeout
        try:
            found = self._run(action.get("command", ""), cwd, limit)
        except OhJupyterError as problem:
            return {"output": "", "returncode": -1, "exception_info": str(problem)}
        if not isinstance(found, CmdOutputObservation):  # rejected, or it could not start
            return {"output": "", "returncode": -1, "exception_info": found.content}
        code, problem = found.metadata.exit_code, ""
        if code == -1:
            problem = f"The command did not end within {limit} s{found.metadata.suffix}"
        first, _, rest = found.content.lstrip().partition("\n")
        if code == 0 and first.strip() == SUBMISSION:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise Submitted({"role": "exit", "content": rest, "extra": extra})
        return {"output": found.content, "returncode": code, "exception_info": problem}

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """What the prompts of the agent may name of the machine."""
        names = ("system", "release", "version", "machine")
        machine = dict(zip(names, self._system.splitlines(), strict=False))
        return {**self.config.model_dump(), **machine, **kwargs}

    def serialize(self) -> dict[str, Any]:
        """What the agent's record says of the environment; the token is not in it."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        described = {"environment": self.config.model_dump(mode="json"), "environment_type": kind}
        return {"info": {"config": described}}
