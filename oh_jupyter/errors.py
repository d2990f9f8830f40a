"""The error tree. Catch a branch, or a leaf.

::

    OhJupyterError
    ├── ConfigError                     a trait, TOML key or variable has an unusable value
    ├── ExtraMissingError               the package of an optional extra is not installed
    ├── WireError                       a message is not the JSON that the protocol defines
    │   ├── UnknownTypeError            no Action or Observation of that type
    │   └── NotRunnableError            an event, but not one that a runtime can execute
    ├── StorageError                    the file store could not do what was asked
    │   ├── StorePathError              the path leaves the root, or cannot be a path
    │   ├── StoreContentError           the contents are not text or bytes, or not UTF-8
    │   ├── StoreConfigError            no such type of store, or no path or bucket for it
    │   └── StoreAccessError            wrong credentials, missing bucket, no route to it
    ├── StoreNotFoundError              the store has nothing at this path
    ├── StoreIsDirectoryError           it has a directory where a file is asked for
    ├── StoreNotDirectoryError          it has a file where a directory is asked for
    ├── EditorError                     the file editor refused; nothing was changed
    │   ├── EditorParameterMissingError a required parameter is not there
    │   ├── EditorParameterInvalidError a parameter has an unusable value
    │   ├── FileValidationError         too large, binary, not a regular file
    │   ├── NoReplacementError          old_str is absent, or not unique
    │   ├── PatchError                  a patch cannot be read, or does not fit the files
    │   ├── HistoryAccessError          the edit history cannot be read or written for now
    │   ├── NoHistoryError              nothing to undo or redo
    │   ├── DraftError                  a draft could not be merged without doubt
    │   └── FileChangedError            somebody else changed the file in between
    ├── CheckpointError                 the workspace cannot be kept, or not brought back
    ├── ChildStartError                 a child process could not be started
    ├── DocumentError                   a document could not be read as text
    ├── ShellError                      the shell session could not start or answer
    │   └── SandboxError                no sandbox can be made for it here
    │       └── HostError               a sandbox may not, or cannot, reach a host
    ├── BrowserError                    the browser could not start or answer
    │   ├── BrowserNotFoundError        no Chromium, Chrome or Edge on this machine
    │   ├── BrowserDriverError          the program that controls the browser does not start
    │   ├── BrowserActionError          a browser action was malformed or failed
    │   └── BrowserTimeoutError         the browser did not answer in time
    ├── SkillError                      an agent skill was asked for what it cannot do
    ├── McpError                        an MCP server behind the runtime does not start or answer
    ├── AgentError                      an agent does not start or answer, or breaks its protocol
    │   └── AgentNotFoundError          no agent of that name, or it is not installed
    ├── PolicyError                     an administrator does not allow it
    ├── PluginError                     a plugin is unknown, or failed to start
    ├── TransferError                   an upload or download is not possible as asked
    │   ├── TransferNotFoundError       no file there to download, or no such transfer
    │   ├── TransferTooLargeError       more than the limit allows, sent or unpacked
    │   └── DiskFullError               the disk or the quota has no room
    ├── ConfirmationError               no action of that id waits for a person
    ├── AnswerError                     a person's values do not fit an agent's form
    ├── EvaluationError                 an evaluation cannot continue; its results so far are kept
    ├── InspectionError                 a variable is missing, or cannot be shown
    ├── EventNotFoundError              the log has no event of that id
    ├── ResourceNotFoundError           MCP: no such resource or prompt, or it cannot be read
    ├── RequestNotFoundError            no request of that id, or its answer is kept no more
    ├── LimitExceededError              more requests than a limit of the server allows
    ├── RuntimeClosedError              the runtime was closed while it was asked
    ├── ServerError                     a client cannot reach the server, or is refused there
    ├── AuthorizationError              a request to a hub's service breaks OAuth, or is rejected
    └── KernelError                     the server could not get an answer from a kernel
        ├── KernelNotFoundError         no kernel of that id
        │   └── ServerNotFoundError     no Jupyter server of this user is running
        ├── GenerationChangedError      the runtime that was asked is no more; nothing was done
        ├── KernelDiedError             it died or restarted while it was asked
        ├── KernelTimeoutError          it did not answer in time
        ├── RequestExpiredError         it answered too late to begin; nothing was done
        ├── GatewayError                the gateway that runs it cannot be reached, or refuses
        │   └── GatewayTimeoutError     the gateway does not connect to it in time
        └── ExtensionMissingError       it answers, but oh_jupyter is not in its environment

Every message says what happened, where, and what to do next. In a notebook an
error renders as that one line; the traceback stays reachable with ``%tb``.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

__all__ = [
    "AgentError",
    "AgentNotFoundError",
    "AnswerError",
    "AuthorizationError",
    "BrowserActionError",
    "BrowserDriverError",
    "BrowserError",
    "BrowserNotFoundError",
    "BrowserTimeoutError",
    "CheckpointError",
    "ChildStartError",
    "ConfigError",
    "ConfirmationError",
    "DiskFullError",
    "DocumentError",
    "DraftError",
    "EditorError",
    "EditorParameterInvalidError",
    "EditorParameterMissingError",
    "EvaluationError",
    "EventNotFoundError",
    "ExtensionMissingError",
    "ExtraMissingError",
    "FileChangedError",
    "FileValidationError",
    "GatewayError",
    "GatewayTimeoutError",
    "GenerationChangedError",
    "HistoryAccessError",
    "HostError",
    "InspectionError",
    "KernelDiedError",
    "KernelError",
    "KernelNotFoundError",
    "KernelTimeoutError",
    "LimitExceededError",
    "McpError",
    "NoHistoryError",
    "NoReplacementError",
    "NotRunnableError",
    "OhJupyterError",
    "PatchError",
    "PluginError",
    "PolicyError",
    "RequestExpiredError",
    "RequestNotFoundError",
    "ResourceNotFoundError",
    "RuntimeClosedError",
    "SandboxError",
    "ServerError",
    "ServerNotFoundError",
    "ShellError",
    "SkillError",
    "StorageError",
    "StoreAccessError",
    "StoreConfigError",
    "StoreContentError",
    "StoreIsDirectoryError",
    "StoreNotDirectoryError",
    "StoreNotFoundError",
    "StorePathError",
    "TransferError",
    "TransferNotFoundError",
    "TransferTooLargeError",
    "UnknownTypeError",
    "WireError",
]


class OhJupyterError(Exception):
    """Base of every error that oh_jupyter raises on purpose."""

    def _render_traceback_(self) -> list[str]:
        """Render as one line in IPython, which looks for this hook.

        Returns:
            The lines to print: the class name and the message.
        """
        return [f"{type(self).__name__}: {self}"]


class ConfigError(OhJupyterError):
    """A trait, TOML key or environment variable has an unusable value."""


class ExtraMissingError(OhJupyterError, ImportError):
    """A package that an optional extra installs is missing."""


class WireError(OhJupyterError, ValueError):
    """A message is not the JSON that the protocol defines.

    Attributes:
        field: The name of the offending field, such as ``args.command``, or "".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class UnknownTypeError(WireError):
    """No Action or Observation has that type."""


class NotRunnableError(WireError):
    """The event is well formed, but it is not one that a runtime can execute."""


class StorageError(OhJupyterError, OSError):
    """The file store could not do what was asked."""


class StorePathError(StorageError, ValueError):
    """The path leaves the root of the store, or cannot be a path at all."""


class StoreContentError(StorageError, TypeError, ValueError):
    """The contents are neither text nor bytes, or are not UTF-8 where text is asked for."""


class StoreConfigError(StorageError, ConfigError, ValueError, KeyError):
    """There is no such type of store, or no path or bucket is configured for it.

    It is a ValueError and a KeyError because OpenHands raises these two for a missing
    path and a missing bucket variable.
    """

    __str__ = Exception.__str__


class StoreAccessError(StorageError):
    """The store cannot be reached: credentials, bucket, or connection."""


class StoreNotFoundError(OhJupyterError, FileNotFoundError):
    """The store has nothing at this path; it works, so that this is no StorageError."""


class StoreIsDirectoryError(OhJupyterError, IsADirectoryError):
    """The store has a directory where a file is asked for."""


class StoreNotDirectoryError(OhJupyterError, NotADirectoryError):
    """The store has a file where a directory is asked for."""


class EditorError(OhJupyterError):
    """The file editor refused; nothing was changed."""


class EditorParameterMissingError(EditorError):
    """A parameter that the command requires is not there."""


class EditorParameterInvalidError(EditorError):
    """A parameter has a value that the command cannot use."""


class FileValidationError(EditorError):
    """The file is too large, binary, or not a regular file."""


class NoReplacementError(EditorError):
    """``old_str`` does not appear in the file, or appears more than once."""


class PatchError(EditorError):
    """A patch cannot be read, or does not fit the files that it names."""


class NoHistoryError(EditorError):
    """There is no edit to undo or redo."""


class HistoryAccessError(EditorError, OSError):
    """The edit history cannot be read or written at the moment; nothing was changed."""


class DraftError(EditorError):
    """A draft could not be merged without doubt, and no model could help."""


class FileChangedError(EditorError):
    """Someone else changed the file since it was last seen."""


class CheckpointError(OhJupyterError):
    """The files of a workspace cannot be kept as they are, or not be brought back."""

    is_lasting = False
    """Whether a later attempt would fail, too, such as on a workspace that is too large."""


class ChildStartError(OhJupyterError, OSError):
    """A child process could not be started: no such program, directory or user."""


class DocumentError(OhJupyterError):
    """A document could not be read as text."""


class ShellError(OhJupyterError):
    """The shell session could not start or answer."""


class SandboxError(ShellError):
    """No sandbox can be made for the shell here."""


class HostError(SandboxError):
    """A sandbox may not, or cannot, reach a host.

    Attributes:
        status: Status of HTTP for the program that wants to reach it.
    """

    def __init__(self, message: str, status: int = 403) -> None:
        """Make the error with its message and status."""
        super().__init__(message)
        self.status = status


class BrowserError(OhJupyterError):
    """The browser could not start or answer."""


class BrowserNotFoundError(BrowserError):
    """There is no Chromium, Chrome or Edge on this machine."""


class BrowserDriverError(BrowserError):
    """The program that controls the browser does not start on this machine."""


class BrowserActionError(BrowserError):
    """A browser action is malformed, or failed on the page."""


class BrowserTimeoutError(BrowserError, TimeoutError):
    """The browser did not answer in time; the step was cancelled."""


class SkillError(OhJupyterError, ValueError):
    """An agent skill was asked for what it cannot do, or there is no such skill."""


class McpError(OhJupyterError):
    """An MCP server behind the runtime does not start or answer, or has no such tool."""


class AgentError(OhJupyterError):
    """An agent does not start or answer, or does not keep to the Agent Client Protocol."""


class AgentNotFoundError(AgentError, LookupError):
    """There is no agent of that name, or its program is not installed."""


class PolicyError(OhJupyterError):
    """An administrator's policy does not allow a capability, or forces a setting."""


class NotApprovedError(OhJupyterError):
    """An agent's request had to wait for a person, who rejected it or did not answer."""


class PluginError(OhJupyterError):
    """A plugin is unknown, or failed to start."""


class ServerError(OhJupyterError):
    """A client cannot reach the server, or is refused there.

    Attributes:
        status: HTTP status of the answer; 0 if there was none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        """Make the error.

        Args:
            message: What happened, and what to do.
            status: HTTP status of the answer.
        """
        super().__init__(message)
        self.status = status


class AuthorizationError(OhJupyterError):
    """A request to a hub's service breaks the rules of OAuth, or is rejected.

    Attributes:
        code: Code of the error in OAuth, such as ``invalid_grant``.
        status: HTTP status of the response, where the error is not sent by a redirect.
    """

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        """Make the error.

        Args:
            code: Code of the error in OAuth.
            message: What happened, and what to do.
            status: HTTP status of the response.
        """
        super().__init__(message)
        self.code = code
        self.status = status


class TransferError(OhJupyterError):
    """An upload or download is not possible as asked."""


class TransferNotFoundError(TransferError):
    """There is no file to download there, or no such transfer any more."""


class TransferTooLargeError(TransferError):
    """It is more than the limit allows, as it was sent or when it is unpacked."""


class DiskFullError(TransferError):
    """The disk or the quota has no room for what is written; nothing was changed."""


def is_full(error: OSError) -> bool:
    """Return whether a disk or quota has no room."""
    return error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class ConfirmationError(OhJupyterError, LookupError):
    """No Action of that id waits for a person's decision."""


class AnswerError(OhJupyterError, ValueError):
    """Values that a person entered do not fit the form of an agent; it still waits."""


class EvaluationError(OhJupyterError):
    """An evaluation cannot continue; its results so far are kept."""


class InspectionError(OhJupyterError):
    """A variable is missing, or it or an expression cannot be shown."""


class EventNotFoundError(OhJupyterError, LookupError):
    """The log of this runtime has no event of that id."""


class ResourceNotFoundError(OhJupyterError, LookupError):
    """A resource or prompt of MCP does not exist, or cannot be read."""


class RequestNotFoundError(OhJupyterError, LookupError):
    """There is no request of that id, or its answer is not kept any more."""


class LimitExceededError(OhJupyterError):
    """More requests than a limit of the server allows.

    Attributes:
        retry_after: Seconds after which it is worth trying again.
    """

    def __init__(self, message: str, retry_after: int = 1) -> None:
        """Make the error.

        Args:
            message: Which limit it is, and what to do.
            retry_after: Seconds after which it is worth trying again.
        """
        super().__init__(message)
        self.retry_after = retry_after


class RuntimeClosedError(OhJupyterError):
    """The runtime was closed before it could answer."""


class KernelError(OhJupyterError):
    """The server could not get an answer from a kernel."""


class KernelNotFoundError(KernelError):
    """The server has no kernel of that id."""


class ServerNotFoundError(KernelNotFoundError):
    """No Jupyter server of this user is running."""


class KernelDiedError(KernelError):
    """The kernel died or restarted while it was asked."""


class GenerationChangedError(KernelError):
    """The runtime that was asked is no more, another one is in its place; nothing was done."""


class KernelTimeoutError(KernelError):
    """The kernel did not answer in time.

    Attributes:
        withdrawn: Whether what was asked is certain not to be carried out any more.
    """

    def __init__(self, message: str, withdrawn: bool = False) -> None:
        """Make the error.

        Args:
            message: What happened, and whether asking again is safe.
            withdrawn: Whether what was asked is certain not to be carried out any more.
        """
        super().__init__(message)
        self.withdrawn = withdrawn


class RequestExpiredError(KernelError):
    """The request reached its kernel too late to start; nothing was done."""


class GatewayError(KernelError):
    """The gateway that runs the kernel cannot be reached, or refuses the connection."""


class GatewayTimeoutError(GatewayError):
    """The gateway does not connect to the kernel in time: it hangs, or does not start."""


class ExtensionMissingError(KernelError):
    """The kernel answers, but oh_jupyter cannot be loaded into it."""


def error_from_fields(name: str, message: str, fields: Mapping[str, Any]) -> OhJupyterError | None:
    """The error that JSON tells of by its class's name; None if that is none of ours."""
    cls = globals().get(name)
    if not (isinstance(cls, type) and issubclass(cls, OhJupyterError)):
        return None
    if issubclass(cls, WireError):
        return cls(message, str(fields.get("field") or ""))
    if issubclass(cls, KernelTimeoutError):
        return cls(message, fields.get("withdrawn") is True)
    return cls(message)
