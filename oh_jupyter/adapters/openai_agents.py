"""OpenAI Agents SDK: shell, patches and code of an agent in a notebook's kernel."""

from __future__ import annotations

import posixpath
import weakref
from typing import Any, Self

from oh_jupyter.adapters.connection import (
    FAILED,
    TIMEOUT_SECONDS,
    connect,
    missing,
    run_command,
)
from oh_jupyter.client.thread import ClientThread
from oh_jupyter.errors import TransferError, TransferNotFoundError
from oh_jupyter.events import (
    CmdOutputObservation,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    FileWriteObservation,
)

try:
    from agents import (
        ApplyPatchTool,
        FunctionTool,
        ShellCallOutcome,
        ShellCommandOutput,
        ShellCommandRequest,
        ShellResult,
        ShellTool,
        Tool,
        ToolOutputImage,
        ToolOutputText,
        apply_diff,
        function_tool,
    )
    from agents.editor import ApplyPatchOperation, ApplyPatchResult
except ImportError as error:
    raise missing(error, "openai-agents") from error

__all__ = ["OhWorkspace"]


class OhWorkspace:
    """A kernel and its files, as the tools of an agent.

    Commands and cells are in the kernel's log, and wait for a person where the settings require
    that. Each change of a file is one step to undo. The tools work on any event loop.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        kernel_id: str | None = None,
        *,
        cwd: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        cell_timeout: float | None = None,
    ) -> None:
        """Make the tools; nothing is sent yet.

        Args:
            url: Address of the Jupyter server; by default ``OH_URL``.
            token: The server's token; by default ``OH_TOKEN``.
            kernel_id: An open kernel; None for the default one, or that of the address.
            cwd: Directory of commands and relative paths, outside of which patches change
                nothing; by default the workspace, and absolute paths may then be anywhere.
            timeout: Default time limit of a command in seconds.
            cell_timeout: Seconds after which a cell is interrupted; None for no limit.

        Raises:
            ServerError: There is no address.
            ValueError: A time limit is not positive.
        """
        if timeout <= 0 or (cell_timeout is not None and cell_timeout <= 0):
            raise ValueError(f"time limits must be positive, got {timeout} and {cell_timeout}")
        self._client = connect("OpenAI Agents SDK", url, token, kernel_id)
        self._thread = ClientThread(self._client.close)
        self._finalizer = weakref.finalize(self, self._thread.close)
        self._cwd, self._timeout, self._cell_timeout = cwd, timeout, cell_timeout
        self._has_own_cwd = cwd is not None

    def close(self) -> None:
        """Close the connections."""
        self._finalizer()

    def __enter__(self) -> Self:
        """Enter a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the connections."""
        self.close()

    def tools(self) -> list[Tool]:
        """Return the shell, the editor and the code interpreter.

        Returns:
            The tools, for ``Agent(tools=…)``. To change their options, pass ``run_commands``
            to a ``ShellTool`` and the workspace itself to an ``ApplyPatchTool``.
        """
        shell, editor = ShellTool(executor=self.run_commands), ApplyPatchTool(editor=self)
        return [shell, editor, self.code_interpreter()]

    def code_interpreter(self, **options: Any) -> FunctionTool:
        """Return a tool that runs cells.

        Args:
            **options: Options of the SDK's ``function_tool``, such as ``needs_approval``.

        Returns:
            The tool, named ``run_python`` unless there is a ``name_override``.
        """

        async def run_python(code: str) -> list[ToolOutputText | ToolOutputImage]:
            """Run Python code as a cell of the open notebook's kernel, on its variables.

            Args:
                code: The cell. Its last expression is shown, and so is what it prints or plots.
            """
            return await self._thread.wait_async(self._run_cell, code)

        tool: FunctionTool = function_tool(**options)(run_python)
        return tool

    async def _run_cell(self, code: str) -> list[ToolOutputText | ToolOutputImage]:
        text, images = "", []
        try:
            lines = await self._client.run_cell(code, self._cell_timeout)
        except TimeoutError as error:  # the SDK hides its message from the model
            return [ToolOutputText(text=str(error))]
        for line in lines:
            if line["type"] in ("stdout", "stderr"):
                text += line["text"]
            elif line["type"] == "error":
                text += line["traceback"] or f"{line['name']}: {line['value']}"
            elif line["type"] == "result" and not (shown := _images(line)):
                text += f"{line.get('text', '')}\n"
            elif line["type"] == "result":
                images += shown
        return [ToolOutputText(text=text), *images] if text or not images else [*images]

    async def run_commands(self, request: ShellCommandRequest) -> ShellResult:
        """Run the commands of a call one by one, each in a shell of its own, without input.

        Args:
            request: The SDK's request. Its time limit is that of each command, and takes the
                place of the default one.

        Returns:
            Outputs and exit codes. Commands after one that was ended by its limit are not run.

        Raises:
            ValueError: The time limit is not positive.
        """
        action = request.data.action
        limit = self._timeout if action.timeout_ms is None else action.timeout_ms / 1000
        if limit <= 0:
            raise ValueError(f"timeout_ms must be positive, got {action.timeout_ms}")
        outputs: list[ShellCommandOutput] = []
        for command in action.commands:
            outputs.append(await self._thread.wait_async(self._run_command, command, limit))
            if outputs[-1].status == "timeout":
                break
        return ShellResult(outputs, max_output_length=action.max_output_length)

    async def _run_command(self, command: str, limit: float) -> ShellCommandOutput:
        observation = await run_command(self._client, command, limit, self._cwd)
        if not isinstance(observation, CmdOutputObservation):
            failed = ShellCallOutcome("exit", FAILED)
            return ShellCommandOutput("", observation.content, failed, command)
        code = observation.exit_code
        outcome = ShellCallOutcome("timeout") if code == -1 else ShellCallOutcome("exit", code)
        return ShellCommandOutput(observation.content, "", outcome, command)

    async def create_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Create a file of the lines in a patch.

        Args:
            operation: The SDK's operation.

        Returns:
            What was done, or the reason of a failure.
        """
        return await self._thread.wait_async(self._create, operation)

    async def update_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Apply a patch to a file, and move the file if the patch says so.

        Args:
            operation: The SDK's operation.

        Returns:
            What was done, or the reason of a failure.
        """
        return await self._thread.wait_async(self._update, operation)

    async def delete_file(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        """Delete a file.

        Args:
            operation: The SDK's operation.

        Returns:
            What was done, or the reason of a failure.
        """
        return await self._thread.wait_async(self._delete, operation)

    async def _create(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        try:
            text = apply_diff("", operation.diff or "", mode="create")
        except ValueError as error:
            return ApplyPatchResult("failed", f"{operation.path}: {error}")
        return await self._write(operation.path, text, "Created")

    async def _update(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        path = await self._resolved(operation.path)
        try:
            old = (await self._client.read_bytes(path)).decode()
            text = apply_diff(old, operation.diff or "")
        except TransferNotFoundError:
            return ApplyPatchResult("failed", f"{path} does not exist")
        except TransferError as error:
            return ApplyPatchResult("failed", str(error))
        except UnicodeDecodeError:
            return ApplyPatchResult("failed", f"{path} is not text in UTF-8")
        except ValueError as error:
            return ApplyPatchResult("failed", f"{path} was not changed: {error}")
        if operation.move_to is None:
            return await self._write(operation.path, text, "Updated")
        return await self._move(operation.path, operation.move_to, text)

    async def _move(self, source: str, target: str, text: str) -> ApplyPatchResult:
        """Write the new text of a file to another one, and delete the file."""
        path = await self._resolved(source)
        is_moved = await self._resolved(target) != path
        if is_moved and await self._within(source) is not None:
            removed = await self._remove(source, dry_run=True)
            if removed.status == "failed":
                return removed
        written = await self._write(target, text, f"Moved {path} to")
        if written.status == "failed" or not is_moved:
            return written
        removed = await self._remove(source)
        return removed if removed.status == "failed" else written

    async def _delete(self, operation: ApplyPatchOperation) -> ApplyPatchResult:
        return await self._remove(operation.path)

    async def _write(self, named: str, text: str, verb: str) -> ApplyPatchResult:
        path = await self._resolved(named)
        action = FileWriteAction(path, text, exact=True, within=await self._within(named))
        observation = await self._client.execute(action)
        if isinstance(observation, FileWriteObservation):
            return ApplyPatchResult("completed", f"{verb} {path}")
        return ApplyPatchResult("failed", observation.content)

    async def _remove(self, named: str, *, dry_run: bool = False) -> ApplyPatchResult:
        path = await self._resolved(named)
        # The editor refuses to delete a file that changed after it was last read.
        await self._client.execute(FileReadAction(path))
        patch = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
        action = FileEditAction(path, "apply_patch", content=patch, dry_run=dry_run)
        action.within = await self._within(named)
        observation = await self._client.execute(action)
        if observation.outcome == "done":
            return ApplyPatchResult("completed", f"Deleted {path}")
        return ApplyPatchResult("failed", observation.failure)

    async def _resolved(self, path: str) -> str:
        """Return an absolute path; relative ones start where commands do."""
        return posixpath.join(await self._directory(), path)

    async def _within(self, named: str) -> str | None:
        """Return the directory in which the file of a patch must be; None for any directory."""
        is_anywhere = named.startswith("/") and not self._has_own_cwd
        return None if is_anywhere else await self._directory()

    async def _directory(self) -> str:
        """Return the absolute path of the directory of commands."""
        if self._cwd is None or not self._cwd.startswith("/"):
            self._cwd = (await self._run_command("pwd", self._timeout)).stdout.removesuffix("\n")
        return self._cwd


def _images(result: dict[str, Any]) -> list[ToolOutputImage]:
    """Return the image of a result, if it has one."""
    for kind in ("jpeg", "png"):
        if kind in result:
            return [ToolOutputImage(image_url=f"data:image/{kind};base64,{result[kind]}")]
    return []
