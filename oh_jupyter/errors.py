"""The error tree. Catch a branch, or a leaf.

::

    OhJupyterError
    ├── ConfigError                     a trait, TOML key or variable has an unusable value
    ├── ExtraMissingError               the package of an optional extra is not installed
    ├── WireError                       JSON does not follow the protocol
    │   ├── UnknownTypeError            no Action or Observation has this type
    │   └── NotRunnableError            a runtime cannot execute this type of event
    ├── StorageError                    the file store failed
    │   ├── StorePathError              the path leaves the root, or cannot be a path
    │   ├── StoreContentError           the contents are not text or bytes, or not UTF-8
    │   ├── StoreConfigError            unknown type of store, or missing path or bucket
    │   └── StoreAccessError            wrong credentials, missing bucket, no route to it
    ├── StoreNotFoundError              the store has nothing at this path
    ├── StoreIsDirectoryError           a directory where a file is expected
    ├── StoreNotDirectoryError          a file where a directory is expected
    ├── EditorError                     the file editor rejected a command; nothing changed
    │   ├── EditorParameterMissingError a required parameter is missing
    │   ├── EditorParameterInvalidError a parameter has an unusable value
    │   ├── FileValidationError         too large, binary, not a regular file
    │   ├── NoReplacementError          old_str is absent, or not unique
    │   ├── PatchError                  a patch cannot be read, or does not fit the files
    │   ├── HistoryAccessError          the edit history is unreadable or unwritable now
    │   ├── NoHistoryError              nothing to undo or redo
    │   ├── DraftError                  a draft cannot be merged unambiguously
    │   └── FileChangedError            the file changed since it was read
    ├── LedgerError                     the database of the user's state cannot be used
    ├── CheckpointError                 a checkpoint cannot be saved or restored
    ├── ChildStartError                 a child process could not be started
    ├── DocumentError                   a document could not be read as text
    ├── ShellError                      the shell could not start or respond
    │   └── SandboxError                no sandbox can be created here
    │       └── HostError               a sandbox cannot or must not reach a host
    ├── BrowserError                    the browser could not start or respond
    │   ├── BrowserNotFoundError        no Chromium, Chrome or Edge on this machine
    │   ├── BrowserDriverError          Playwright's driver does not start
    │   ├── BrowserActionError          a browser action was malformed or failed
    │   └── BrowserTimeoutError         the browser did not respond in time
    ├── SkillError                      an agent skill is unknown or got invalid arguments
    ├── McpError                        an MCP server does not start or respond
    ├── AgentError                      an agent does not start, or violates its protocol
    │   └── AgentNotFoundError          no agent has this name, or it is not installed
    ├── PolicyError                     an administrator's policy forbids it
    ├── PluginError                     a plugin is unknown, or failed to start
    ├── TransferError                   an upload or download failed
    │   ├── TransferNotFoundError       no such file or transfer
    │   ├── TransferTooLargeError       the content exceeds the limit, sent or unpacked
    │   └── DiskFullError               the disk or the quota is full
    ├── ConfirmationError               no Action with this id waits for approval
    ├── AnswerError                     a person's values do not match an agent's form
    ├── EvaluationError                 an evaluation cannot continue; its results so far are kept
    ├── InspectionError                 a variable is missing, or cannot be shown
    ├── EventNotFoundError              the log has no event with this id
    ├── ResourceNotFoundError           MCP: the resource or prompt is missing or unreadable
    ├── RequestNotFoundError            no such request, or its result has expired
    ├── LimitExceededError              too many requests
    ├── RuntimeClosedError              the runtime closed before it responded
    ├── ServerError                     the server is unreachable, or rejects the client
    ├── AuthorizationError              a hub's service rejects an OAuth request
    └── KernelError                     a kernel did not respond to the server
        ├── KernelNotFoundError         no kernel has this id
        │   └── ServerNotFoundError     no Jupyter server of this user is running
        ├── GenerationChangedError      another runtime has replaced the addressed one
        ├── KernelDiedError             it died or restarted before it responded
        ├── KernelTimeoutError          it did not respond in time
        ├── RequestExpiredError         the request arrived too late; nothing was done
        ├── GatewayError                its gateway is unreachable, or rejects the connection
        │   └── GatewayTimeoutError     its gateway did not connect in time
        └── ExtensionMissingError       it responds, but oh_jupyter is not installed there

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
    "LedgerError",
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
    """JSON does not follow the protocol.

    Attributes:
        field: The name of the offending field, such as ``args.command``, or "".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class UnknownTypeError(WireError):
    """No Action or Observation has this type."""


class NotRunnableError(WireError):
    """The event is valid, but a runtime cannot execute its type."""


class StorageError(OhJupyterError, OSError):
    """The file store failed."""


class StorePathError(StorageError, ValueError):
    """The path leaves the root of the store, or is not a valid path."""


class StoreContentError(StorageError, TypeError, ValueError):
    """The contents are neither text nor bytes, or are not UTF-8 where text is expected."""


class StoreConfigError(StorageError, ConfigError, ValueError, KeyError):
    """The type of store is unknown, or its path or bucket is missing.

    It is a ValueError and a KeyError because OpenHands raises these two for a missing
    path and a missing bucket variable.
    """

    __str__ = Exception.__str__


class StoreAccessError(StorageError):
    """The store cannot be reached: credentials, bucket, or connection."""


class StoreNotFoundError(OhJupyterError, FileNotFoundError):
    """The store has nothing at this path; not a StorageError, because the store works."""


class StoreIsDirectoryError(OhJupyterError, IsADirectoryError):
    """The store has a directory where a file is expected."""


class StoreNotDirectoryError(OhJupyterError, NotADirectoryError):
    """The store has a file where a directory is expected."""


class EditorError(OhJupyterError):
    """The file editor rejected a command; nothing changed."""


class EditorParameterMissingError(EditorError):
    """A required parameter is missing."""


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
    """The edit history cannot be read or written at the moment; nothing changed."""


class DraftError(EditorError):
    """A draft cannot be merged unambiguously, and no model could help."""


class FileChangedError(EditorError):
    """Someone else changed the file since it was last seen."""


class LedgerError(OhJupyterError, OSError):
    """The database of the user's state cannot be read or written.

    Attributes:
        reason: The system's or the database's error.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class CheckpointError(OhJupyterError):
    """The files of a workspace cannot be saved or restored."""

    is_lasting = False
    """Whether a retry would fail, too, such as on a workspace that is too large."""


class ChildStartError(OhJupyterError, OSError):
    """A child process could not be started: no such program, directory or user."""


class DocumentError(OhJupyterError):
    """A document could not be read as text."""


class ShellError(OhJupyterError):
    """The shell could not start or respond."""


class SandboxError(ShellError):
    """No sandbox can be created for the shell here."""


class HostError(SandboxError):
    """A sandbox cannot or must not reach a host.

    Attributes:
        status: HTTP status for the program in the sandbox.
    """

    def __init__(self, message: str, status: int = 403) -> None:
        """Make the error with its message and status."""
        super().__init__(message)
        self.status = status


class BrowserError(OhJupyterError):
    """The browser could not start or respond."""


class BrowserNotFoundError(BrowserError):
    """There is no Chromium, Chrome or Edge on this machine."""


class BrowserDriverError(BrowserError):
    """The program that controls the browser does not start on this machine."""


class BrowserActionError(BrowserError):
    """A browser action is malformed, or failed on the page."""


class BrowserTimeoutError(BrowserError, TimeoutError):
    """The browser did not respond in time; the step was cancelled."""


class SkillError(OhJupyterError, ValueError):
    """An agent skill is unknown, or its arguments are invalid."""


class McpError(OhJupyterError):
    """An MCP server behind the runtime does not start or respond, or lacks a tool."""


class AgentError(OhJupyterError):
    """An agent does not start or respond, or violates the Agent Client Protocol."""


class AgentNotFoundError(AgentError, LookupError):
    """No agent has this name, or its program is not installed."""


class PolicyError(OhJupyterError):
    """An administrator's policy forbids a capability, or forces a setting."""


class NotApprovedError(OhJupyterError):
    """A person rejected an agent's request, or did not answer in time."""


class PluginError(OhJupyterError):
    """A plugin is unknown, or failed to start."""


class ServerError(OhJupyterError):
    """The server is unreachable, or rejects the client.

    Attributes:
        status: HTTP status of the response; 0 without one.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        """Make the error.

        Args:
            message: What happened, and what to do.
            status: HTTP status of the response.
        """
        super().__init__(message)
        self.status = status


class AuthorizationError(OhJupyterError):
    """A hub's service rejects an OAuth request.

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
    """An upload or download failed."""


class TransferNotFoundError(TransferError):
    """The file or the transfer does not exist."""


class TransferTooLargeError(TransferError):
    """The content exceeds the limit, as sent or when unpacked."""


class DiskFullError(TransferError):
    """The disk or the quota is full; nothing changed."""


def is_full(error: OSError) -> bool:
    """Return whether an error means that a disk or quota is full."""
    return error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class ConfirmationError(OhJupyterError, LookupError):
    """No Action with this id waits for approval."""


class AnswerError(OhJupyterError, ValueError):
    """A person's values do not match the form of an agent, which still waits."""


class EvaluationError(OhJupyterError):
    """An evaluation cannot continue; its results so far are kept."""


class InspectionError(OhJupyterError):
    """A variable is missing, or it or an expression cannot be shown."""


class EventNotFoundError(OhJupyterError, LookupError):
    """The log of this runtime has no event with this id."""


class ResourceNotFoundError(OhJupyterError, LookupError):
    """A resource or prompt of MCP does not exist, or cannot be read."""


class RequestNotFoundError(OhJupyterError, LookupError):
    """The request does not exist, or its result has expired."""


class LimitExceededError(OhJupyterError):
    """The caller sent more requests than the server allows.

    Attributes:
        retry_after: Seconds to wait before the next attempt.
    """

    def __init__(self, message: str, retry_after: int = 1) -> None:
        """Make the error.

        Args:
            message: Which limit it is, and what to do.
            retry_after: Seconds to wait before the next attempt.
        """
        super().__init__(message)
        self.retry_after = retry_after


class RuntimeClosedError(OhJupyterError):
    """The runtime closed before it responded."""


class KernelError(OhJupyterError):
    """A kernel did not respond to the server."""


class KernelNotFoundError(KernelError):
    """The server has no kernel with this id."""


class ServerNotFoundError(KernelNotFoundError):
    """No Jupyter server of this user is running."""


class KernelDiedError(KernelError):
    """The kernel died or restarted before it responded."""


class GenerationChangedError(KernelError):
    """Another runtime has replaced the addressed one; nothing was done."""


class KernelTimeoutError(KernelError):
    """The kernel did not respond in time.

    Attributes:
        withdrawn: Whether the kernel is certain not to execute the request any more.
    """

    def __init__(self, message: str, withdrawn: bool = False) -> None:
        """Make the error.

        Args:
            message: What happened, and whether a retry is safe.
            withdrawn: Whether the kernel is certain not to execute the request any more.
        """
        super().__init__(message)
        self.withdrawn = withdrawn


class RequestExpiredError(KernelError):
    """The request reached its kernel too late to start; nothing was done."""


class GatewayError(KernelError):
    """The kernel's gateway is unreachable, or rejects the connection."""


class GatewayTimeoutError(GatewayError):
    """The gateway did not connect to the kernel in time."""


class ExtensionMissingError(KernelError):
    """The kernel responds, but oh_jupyter cannot be loaded into it."""


def error_from_fields(name: str, message: str, fields: Mapping[str, Any]) -> OhJupyterError | None:
    """Return the OhJupyterError that a JSON reply names, or None for other classes."""
    cls = globals().get(name)
    if not (isinstance(cls, type) and issubclass(cls, OhJupyterError)):
        return None
    if issubclass(cls, WireError):
        return cls(message, str(fields.get("field") or ""))
    if issubclass(cls, KernelTimeoutError):
        return cls(message, fields.get("withdrawn") is True)
    return cls(message)
