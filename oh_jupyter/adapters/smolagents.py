"""smolagents: an executor that runs an agent's code among a notebook's variables."""

from __future__ import annotations

import ast
import base64
import io
import weakref
from typing import Any

from oh_jupyter.adapters.connection import connect, missing
from oh_jupyter.client.thread import ClientThread

try:
    import PIL.Image
    from smolagents.local_python_executor import CodeOutput
    from smolagents.monitoring import AgentLogger
    from smolagents.remote_executors import RemotePythonExecutor
    from smolagents.tools import get_tools_definition_code
    from smolagents.utils import AgentError
except ImportError as error:
    raise missing(error, "smolagents") from error

__all__ = ["OhExecutor"]

OMITTED = "characters are left out ...]"
"""Part of the notice in an error that was shortened."""

MISSING_PACKAGES = """\
from importlib.metadata import packages_distributions as _installed
print(*sorted(set({names!r}) - {{d for ds in _installed().values() for d in ds}}))
del _installed
"""


class OhExecutor(RemotePythonExecutor):
    """Runs the code of a ``CodeAgent`` as cells of a notebook's kernel.

    The agent works on the variables that are there, and its own stay there. Cells are in the
    kernel's log, and wait for a person where the settings require that.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        kernel_id: str | None = None,
        *,
        timeout: float | None = None,
        logger: AgentLogger | None = None,
        allow_pickle: bool = False,
    ) -> None:
        """Make an executor; nothing is sent yet.

        Args:
            url: Address of the Jupyter server; by default ``OH_URL``.
            token: The server's token; by default ``OH_TOKEN``.
            kernel_id: An open kernel; None for the default one, or that of the address.
            timeout: Seconds after which a cell is interrupted; None for no limit.
            logger: The agent's logger.
            allow_pickle: Whether values that are not data may be pickled.

        Raises:
            ServerError: There is no address.
        """
        self._client = connect("smolagents", url, token, kernel_id)
        self._thread = ClientThread(self._client.close)
        self._finalizer = weakref.finalize(self, self._thread.close)
        self._timeout = timeout
        self._defined: set[str] = set()
        super().__init__([], logger or AgentLogger(level=-1), allow_pickle)

    def send_tools(self, tools: dict[str, Any]) -> None:
        """Define tools in the kernel.

        Args:
            tools: The tools by name; their packages are installed if they are missing.
        """
        super().send_tools(tools)
        self._defined |= _defined_names(get_tools_definition_code(tools))

    def send_variables(self, variables: dict[str, Any]) -> None:
        """Define variables in the kernel; its own are there already.

        Args:
            variables: Their values by name.
        """
        super().send_variables(variables)
        if variables:
            self._defined |= {"vars_dict", "SafeSerializer", "_deserialize"}

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """Install the packages that are missing.

        Args:
            additional_imports: Names of packages.

        Returns:
            All of them.
        """
        listed = self.run_code_raise_errors(MISSING_PACKAGES.format(names=additional_imports))
        if names := listed.logs.split():
            self.run_code_raise_errors(f"%pip install {' '.join(names)}")
        return additional_imports

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        """Run a cell.

        Args:
            code: The code.

        Returns:
            The value of its last expression, as an image or as text, what it printed, and whether
            it called ``final_answer``.

        Raises:
            AgentError: It failed, was interrupted after the time limit, or was rejected.
        """
        try:
            lines = self._thread.wait(self._client.run_cell, code, self._timeout)
        except TimeoutError as error:
            raise AgentError(str(error), self.logger) from None
        logs = "".join(line["text"] for line in lines if line["type"] in ("stdout", "stderr"))
        for line in lines:
            if line["type"] == "error" and line["name"] == self.FINAL_ANSWER_EXCEPTION:
                answer = self._deserialize_final_answer(self._whole(line), self.allow_pickle)
                return CodeOutput(answer, logs, True)
            if line["type"] == "error":
                reason = f"{line['name']}\n{line['value']}\n{line['traceback']}"
                message = f"{logs}\nExecuting code yielded an error:\n{reason}"
                raise AgentError(message, self.logger)
        results = [line for line in lines if line.get("is_main_result")]
        return CodeOutput(_value(results[-1]) if results else None, logs, False)

    def _whole(self, error: dict[str, Any]) -> str:
        """Return the text of an answer, which the kernel shortens in errors."""
        if OMITTED not in error["value"]:
            return str(error["value"])
        code = "print(__import__('sys').last_value.value, end='')"
        lines = self._thread.wait(self._client.run_cell, code, self._timeout)
        return "".join(line["text"] for line in lines if line["type"] == "stdout")

    def cleanup(self) -> None:
        """Remove what was defined for the agent, and close the connections; variables stay."""
        if not self._finalizer.alive:
            return
        try:
            if self._defined:
                names = sorted(self._defined)
                self.run_code_raise_errors(f"for _ in {names!r}:\n    globals().pop(_, None)")
        finally:
            self._finalizer()


def _defined_names(code: str) -> set[str]:
    """Return the classes, functions and variables that code defines at its top level."""
    names = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def _value(result: dict[str, Any]) -> Any:
    """Return a result as an image, or as text."""
    for kind in ("jpeg", "png"):
        if kind in result:
            return PIL.Image.open(io.BytesIO(base64.b64decode(result[kind])))
    return result.get("text")
