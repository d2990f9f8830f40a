"""OpenHands up to 0.62 (V0) on a Jupyter kernel: a runtime of it that uses ``oh_jupyter``.

Later releases have no such runtimes: their SDK works by ``oh_jupyter.openhands``.

The agent then works where you work: its cells run in the kernel of your notebook, its commands
in a shell beside it, and the panel in JupyterLab shows, and where you want asks, what it does.

1. Start JupyterLab with ``oh_jupyter``, and open a notebook.
2. In the environment where OpenHands is installed (Python 3.12, ``openhands-ai==0.62.0``), name
   this file's class in ``config.toml``, by the way that Python imports it::

       [core]
       runtime = "openhands_runtime.JupyterRuntime"

3. Say where the kernel is, and start OpenHands. Without ``--notebook`` it is the server's default
   kernel, which is started when it is first asked::

       eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
       export PYTHONPATH=/path/to/oh_jupyter/examples
       python -m openhands.core.main -t "Plot the data frame df"

Kernel, shell and files are yours, so OpenHands leaves alone what would outlast the session: no
line is added to ``~/.bashrc``, and git's global name and address stay as they are. There is no
sandbox around the agent but the one around your Jupyter server. Closing the runtime leaves the
kernel running.

OpenHands' agents are told to look into ``/tmp/oh-server-url`` for an address where they can view
PDFs and pictures: start JupyterLab with ``OH_JUPYTER_SERVER_URL_FILE=/tmp/oh-server-url`` for that.

An action that waits for your approval longer than ``timeout`` in ``[sandbox]``, which is two
minutes by default, is taken back, and the agent is told so.
"""

from __future__ import annotations

import os
import shlex
from typing import Any
from urllib.parse import urljoin

import httpx
from openhands.core.exceptions import (
    AgentRuntimeDisconnectedError,
    AgentRuntimeTimeoutError,
    AgentRuntimeUnavailableError,
)
from openhands.events.action import Action, CmdRunAction, IPythonRunCellAction
from openhands.events.observation import CmdOutputObservation, ErrorObservation, Observation
from openhands.runtime.impl.action_execution.action_execution_client import ActionExecutionClient
from openhands.runtime.runtime_status import RuntimeStatus
from openhands.runtime.utils.request import RequestHTTPError
from openhands.utils.async_utils import call_sync_from_async

__all__ = ["JupyterRuntime"]

ADVICE = {
    403: "OH_TOKEN is not the token of that Jupyter server; set both again by "
    'eval "$(oh-jupyter env)"',
    404: "that kernel is gone, or oh_jupyter is not installed where the Jupyter server runs; "
    'find the kernel again by eval "$(oh-jupyter env --notebook NAME)"',
}
"""What to do about answers that no later action would change."""

RESTARTED = (
    "[The kernel was restarted since the last action: its variables, the shell with its directory "
    "and variables, and the browser are new. The session's environment variables are set again "
    "from the next action on.]\n"
)


class JupyterRuntime(ActionExecutionClient):
    """OpenHands' own client of the action-execution protocol, pointed to ``oh_jupyter``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Read where the kernel is; nothing is sent yet.

        Args:
            *args: As OpenHands gives them.
            **kwargs: As OpenHands gives them.

        Raises:
            AgentRuntimeUnavailableError: ``OH_URL`` is not set.
        """
        self.url = os.environ.get("OH_URL", "").rstrip("/")
        self.token = os.environ.get("OH_TOKEN", "")
        if not self.url:
            raise AgentRuntimeUnavailableError(
                'OH_URL is not set: start JupyterLab, then eval "$(oh-jupyter env)"'
            )
        self._generation: str | None = None
        self._restarted = False
        self._env_vars: dict[str, str] = {}
        super().__init__(*args, **kwargs)
        self.session.headers["Authorization"] = f"token {self.token}"

    @property
    def action_execution_server_url(self) -> str:
        """The address below which the endpoints are."""
        return self.url

    @property
    def session_api_key(self) -> str | None:
        """What OpenHands' MCP client sends as its bearer token."""
        return self.token or None

    @property
    def vscode_url(self) -> str | None:
        """Where VS Code is, if the kernel runs it."""
        answer = self._send_action_server_request("GET", f"{self.url}/vscode", timeout=10)
        path = answer.json()["url"]
        return urljoin(self.url, path) if path else None

    async def connect(self) -> None:
        """Find the kernel and its directory, and set the session's variables in it.

        Raises:
            AgentRuntimeUnavailableError: The server or the kernel is not there, or refuses.
        """
        self.set_runtime_status(RuntimeStatus.STARTING_RUNTIME)
        await call_sync_from_async(self.check_if_alive)
        await call_sync_from_async(self._find_workspace)
        await call_sync_from_async(self.setup_initial_env)
        self._runtime_initialized = True
        self.set_runtime_status(RuntimeStatus.READY)

    def send_action_for_execution(self, action: Action) -> Observation:
        """Carry out an Action; that it is refused or late is an Observation that the agent reads.

        Args:
            action: The Action.

        Returns:
            Its Observation.

        Raises:
            AgentRuntimeUnavailableError: The server or the kernel is not there any more.
        """
        try:
            observation = super().send_action_for_execution(action)
        except RequestHTTPError as problem:
            observation = ErrorObservation(str(problem.detail or problem))
        except AgentRuntimeTimeoutError as problem:
            observation = ErrorObservation(
                f"{problem}. It was taken back; it may have waited for approval"
            )
        if self._restarted:
            self._restarted = False
            self.add_env_vars(self._env_vars)
            observation.content = RESTARTED + observation.content
        return observation

    def add_env_vars(self, env_vars: dict[str, str]) -> None:
        """Set variables in shell and kernel, for as long as these live.

        Args:
            env_vars: Value by name.

        Raises:
            RuntimeError: They cannot be set.
        """
        values = {name.upper(): value for name, value in env_vars.items()}
        if not values:
            return
        self._env_vars |= values
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
        done = self.run(CmdRunAction(f"export {exports}"))
        if not isinstance(done, CmdOutputObservation) or done.exit_code != 0:
            raise RuntimeError(f"{', '.join(values)} cannot be set in the shell: {done.content}")
        self.run_ipython(IPythonRunCellAction(f"__import__('os').environ.update({values!r})"))

    def _setup_git_config(self) -> None:
        """Leave the person's name and address as they are."""

    def _find_workspace(self) -> None:
        """Tell OpenHands the shell's directory: repositories are cloned there."""
        found = self.run(CmdRunAction("pwd"))
        if not isinstance(found, CmdOutputObservation) or found.exit_code != 0:
            raise AgentRuntimeUnavailableError(f"The shell at {self.url} fails: {found.content}")
        self.config.workspace_mount_path_in_sandbox = found.content

    def _send_action_server_request(self, method: str, url: str, **kwargs: Any) -> httpx.Response:
        """Send a request, and say what to do when there is nobody to answer it."""
        try:
            answer = super()._send_action_server_request(method, url, **kwargs)
            self._note_generation(answer.headers.get("X-OH-Jupyter-Generation"))
            return answer
        except httpx.NetworkError as problem:
            raise AgentRuntimeDisconnectedError(
                f"{self.url} cannot be reached ({problem}): is the Jupyter server running?"
            ) from problem
        except RequestHTTPError as problem:
            status = problem.response.status_code
            if status not in ADVICE:
                raise
            raise AgentRuntimeDisconnectedError(
                f"{url} answers {status} ({problem.detail}): {ADVICE[status]}"
            ) from problem

    def _note_generation(self, generation: str | None) -> None:
        """Notice that the kernel's runtime is another one than at the last action."""
        if generation is None:
            return
        self._restarted = self._restarted or self._generation not in (None, generation)
        self._generation = generation
