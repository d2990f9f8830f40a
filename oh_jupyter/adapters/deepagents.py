"""LangChain deepagents: a sandbox backend on the kernel's machine."""

from __future__ import annotations

import asyncio
import shlex
import uuid
import weakref
from typing import Self

from oh_jupyter.adapters.connection import (
    FAILED,
    TIMEOUT_SECONDS,
    connect,
    missing,
    run_command,
)
from oh_jupyter.client.thread import ClientThread
from oh_jupyter.errors import OhJupyterError, TransferError, TransferNotFoundError
from oh_jupyter.events import (
    CmdOutputObservation,
    FileEditAction,
    FileReadAction,
    FileReadObservation,
    FileWriteAction,
    FileWriteObservation,
)

try:
    from deepagents.backends.protocol import (
        DeleteResult,
        EditResult,
        ExecuteResponse,
        FileDownloadResponse,
        FileUploadResponse,
        WriteResult,
    )
    from deepagents.backends.sandbox import BaseSandbox
except ImportError as error:
    raise missing(error, "deepagents") from error

__all__ = ["OhSandbox"]

TIMED_OUT = 124
"""Exit code of a command that was ended by its time limit."""

MAX_RECORDED_BYTES = 32 * 1024**2
"""Size above which a written file is uploaded, and cannot be undone."""


CHECK_WITHIN = """
import os, sys
folder, name = os.path.split(sys.argv[1].rstrip("/"))
root, path = os.path.realpath("."), os.path.normpath(os.path.join(os.path.realpath(folder), name))
if os.path.commonpath([root, path]) != root or path == root:
    sys.exit(f"{sys.argv[1]} is not below {root}; nothing was deleted. Use a path below it.")
"""
"""Program that fails unless a path, whose last part may be a link, is in its directory."""


class OhSandbox(BaseSandbox):
    """A kernel's machine as the backend of a deep agent.

    Commands run in shells of their own. ``write`` and ``edit`` go through the editor, so that
    each of them is one step to undo. Everything is in the kernel's log, and waits for a person
    where the settings require that. The methods work on threads and on any event loop.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        kernel_id: str | None = None,
        *,
        cwd: str | None = None,
        timeout: int = TIMEOUT_SECONDS,
    ) -> None:
        """Make a backend; nothing is sent yet.

        Args:
            url: Address of the Jupyter server; by default ``OH_URL``.
            token: The server's token; by default ``OH_TOKEN``.
            kernel_id: An open kernel; None for the default one, or that of the address.
            cwd: Working directory of the commands, outside of which ``write``, ``edit``,
                ``delete`` and ``upload_files`` change nothing; by default the workspace, and files
                may then be anywhere. Commands and reading are not limited.
            timeout: Default time limit of a command in seconds.

        Raises:
            ServerError: There is no address.
            ValueError: The time limit is not positive.
        """
        if timeout <= 0:
            raise ValueError(f"timeout must be positive, got {timeout}")
        self._client = connect("deepagents", url, token, kernel_id)
        self._thread = ClientThread(self._client.close)
        self._finalizer = weakref.finalize(self, self._thread.close)
        self._id = f"oh-jupyter-{uuid.uuid4().hex[:8]}"
        self._cwd, self._timeout = cwd, timeout

    @property
    def id(self) -> str:
        """Unique name of this backend."""
        return self._id

    def close(self) -> None:
        """Close the connections."""
        self._finalizer()

    def __enter__(self) -> Self:
        """Enter a ``with`` block."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close the connections."""
        self.close()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command in a shell of its own, without input.

        Args:
            command: The command.
            timeout: Time limit in seconds; None for the default, 0 for no limit.

        Returns:
            Its output and errors in one text, and its exit code: 124 after the time limit, 1 if the
            command was not run.

        Raises:
            ValueError: The time limit is negative.
        """
        return self._thread.wait(self._execute, command, timeout)

    async def aexecute(
        self,
        command: str,
        *,
        timeout: int | None = None,
    ) -> ExecuteResponse:
        """Run a command like ``execute``; cancelling the task ends the command."""
        return await self._thread.wait_async(self._execute, command, timeout)

    async def _execute(self, command: str, timeout: int | None) -> ExecuteResponse:
        limit = self._timeout if timeout is None else timeout
        if limit < 0:
            raise ValueError(f"timeout must not be negative, got {limit}")
        if not command.strip():
            return ExecuteResponse("Error: Command must be a non-empty string.", FAILED)
        observation = await run_command(self._client, command, limit or None, self._cwd)
        if not isinstance(observation, CmdOutputObservation):
            return ExecuteResponse(observation.content, FAILED)
        code, output = observation.exit_code, observation.content
        if code == -1:
            code = TIMED_OUT
            notice = f"Error: Command timed out after {limit} seconds."
            output = f"{output}\n{notice}" if output else notice
        return ExecuteResponse(output, code, truncated=bool(observation.metadata.prefix))

    def write(self, file_path: str, content: str) -> WriteResult:
        """Create or replace a file, as one step to undo.

        Args:
            file_path: Its absolute path; missing directories are created.
            content: Its text, stored unchanged.

        Returns:
            The path, or the reason of a failure.
        """
        return self._thread.wait(self._write, file_path, content)

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        """Create or replace a file like ``write``."""
        return await self._thread.wait_async(self._write, file_path, content)

    async def _write(self, file_path: str, content: str) -> WriteResult:
        if not file_path.startswith("/"):
            return WriteResult(error=f"Error: '{file_path}' is not an absolute path")
        if len(content) > MAX_RECORDED_BYTES:
            error = await self._upload(file_path, content.encode())
            return WriteResult(error) if error else WriteResult(path=file_path)
        action = FileWriteAction(file_path, content, exact=True, within=self._cwd)
        observation = await self._client.execute(action)
        if isinstance(observation, FileWriteObservation):
            return WriteResult(path=file_path)
        return WriteResult(f"Failed to write file '{file_path}': {observation.content}")

    def edit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace a text in a file, as one step to undo.

        Args:
            file_path: Absolute path of the file.
            old_string: The text to replace; its line ends may differ from the file's.
            new_string: The replacement.
            replace_all: Replace all occurrences instead of the only one.

        Returns:
            The path and the number of replacements, or the reason of a failure.
        """
        return self._thread.wait(self._edit, file_path, old_string, new_string, replace_all)

    async def aedit(
        self, file_path: str, old_string: str, new_string: str, replace_all: bool = False
    ) -> EditResult:
        """Replace a text in a file like ``edit``."""
        return await self._thread.wait_async(
            self._edit, file_path, old_string, new_string, replace_all
        )

    async def _edit(self, file_path: str, old: str, new: str, replace_all: bool) -> EditResult:
        if not old:
            return EditResult("Error: old_string must not be empty")
        if not file_path.startswith("/"):
            return EditResult(f"Error: '{file_path}' is not an absolute path")
        # The editor also accepts approximate matches; the framework expects exact ones, counted.
        seen = await self._client.execute(FileReadAction(file_path))
        if not isinstance(seen, FileReadObservation):
            is_missing = seen.reason_code == "file_not_found"
            reason = f"File '{file_path}' not found" if is_missing else seen.content
            return EditResult(f"Error: {reason}")
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        count = seen.content.count(old)
        if not count:
            return EditResult(f"Error: String not found in file: '{old}'")
        if count > 1 and not replace_all:
            return EditResult(
                f"Error: String '{old}' appears multiple times. Use replace_all=True to replace "
                "all occurrences."
            )
        if old == new:
            return EditResult(path=file_path, occurrences=count)
        action = FileEditAction(file_path, "str_replace", old_str=old, new_str=new)
        action.replace_all, action.within = replace_all, self._cwd
        observation = await self._client.execute(action)
        if observation.outcome == "done":
            return EditResult(path=file_path, occurrences=count)
        return EditResult(f"Error editing file '{file_path}': {observation.failure}")

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file or directory like the framework, if it is in ``cwd``; it is not undone.

        Args:
            file_path: Its absolute path.

        Returns:
            The path, or the reason of a failure.
        """
        if fault := self._outside(file_path):
            return DeleteResult(error=fault)
        return super().delete(file_path)

    def _outside(self, path: str) -> str:
        """Return why a file must not be deleted that is outside of ``cwd``, or ""."""
        if self._cwd is None:
            return ""
        checked = self.execute(shlex.join(["python3", "-c", CHECK_WITHIN, path]))
        return "" if checked.exit_code == 0 else f"Error: {checked.output.strip()}"

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Store files as they are; this cannot be undone.

        Args:
            files: Absolute paths and contents; missing directories are created.

        Returns:
            A response for each file, in order, with an error code for those that failed.
        """
        return self._thread.wait(self._upload_files, files)

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Store files like ``upload_files``."""
        return await self._thread.wait_async(self._upload_files, files)

    async def _upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        errors = await asyncio.gather(*(self._upload(path, contents) for path, contents in files))
        return [
            FileUploadResponse(path, error) for (path, _), error in zip(files, errors, strict=True)
        ]

    async def _upload(self, path: str, contents: bytes) -> str | None:
        """Store a file; return an error code, or None."""
        if not path.startswith("/"):
            return "invalid_path"
        try:
            await self._client.write_bytes(path, contents, self._cwd)
        except TransferError as error:
            return _error_code(error)
        return None

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Fetch files as they are.

        Args:
            paths: Their absolute paths.

        Returns:
            A response for each file, in order, with its contents or an error code.
        """
        return self._thread.wait(self._download_files, paths)

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Fetch files like ``download_files``."""
        return await self._thread.wait_async(self._download_files, paths)

    async def _download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return list(await asyncio.gather(*map(self._download, paths)))

    async def _download(self, path: str) -> FileDownloadResponse:
        if not path.startswith("/"):
            return FileDownloadResponse(path, error="invalid_path")
        try:
            return FileDownloadResponse(path, await self._client.read_bytes(path))
        except TransferError as error:
            return FileDownloadResponse(path, error=_error_code(error))


def _error_code(error: OhJupyterError) -> str:
    """Return the framework's code of a failed transfer, or the message if there is none."""
    if isinstance(error, TransferNotFoundError):
        return "file_not_found"
    text = str(error)
    if "is a directory" in text:
        return "is_directory"
    return "permission_denied" if "may not be read" in text or "denied" in text else text
