"""What a link to a kernel can do, whatever carries its messages."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from oh_jupyter import errors
from oh_jupyter.errors import (
    KernelDiedError,
    KernelError,
    KernelTimeoutError,
    OhJupyterError,
    WireError,
)
from oh_jupyter.server.limits import Turns

__all__ = ["KernelLink", "Reply"]


@dataclass(frozen=True)
class Reply:
    """A kernel's answer.

    Attributes:
        fields: The message's content.
        body: JSON that the kernel has encoded already, or None.
    """

    fields: dict[str, Any]
    body: bytes | None = None


class KernelLink(ABC):
    """Carries requests to the runtime in one kernel.

    Attributes:
        kernel_id: The server's id of the kernel.
        turns: How many actions the kernel gets at once; None for any number.
        answered: Whether the kernel has answered anything since it was started, or restarted.
        ever_answered: Whether it has answered anything at all.
    """

    kernel_id: str
    answered: bool = False
    ever_answered: bool = False
    turns: Turns | None = None

    async def open(self) -> None:
        """Connect, where that is not done already.

        Raises:
            KernelNotFoundError: The kernel is no more.
            GatewayError: The gateway that runs the kernel cannot be reached.
        """
        return None

    @abstractmethod
    async def request(
        self,
        operation: str,
        fields: dict[str, Any] | None = None,
        body: bytes | None = None,
        *,
        load: bool = True,
        overdue: asyncio.Event | None = None,
    ) -> Reply:
        """Ask the runtime.

        Args:
            operation: Name of the operation.
            fields: Its arguments.
            body: JSON bytes that are passed on as they are.
            load: Load oh_jupyter into the kernel first if it is not there; who only looks
                must not change a person's kernel.
            overdue: Set while a kernel is silent that has received it; the wait then goes on.

        Returns:
            The answer.

        Raises:
            KernelDiedError: The kernel died or restarted meanwhile.
            KernelTimeoutError: The kernel has stopped answering.
            KernelNotFoundError: The kernel is no more.
            GatewayError: The gateway that runs the kernel cannot be reached.
            ExtensionMissingError: oh_jupyter is not loaded in it, or cannot be.
            LimitExceededError: Too many actions wait for the kernel already.
            OhJupyterError: What the runtime refused, as the error it raised there.
        """

    @abstractmethod
    def silence(self, received: bool = True) -> KernelTimeoutError:
        """The error that tells of a kernel which has stopped answering.

        Args:
            received: Whether the kernel may have received what was asked.
        """

    @abstractmethod
    def kernel_gone(self, problem: KernelDiedError) -> None:
        """End all pending requests: the process that was asked is no more.

        Args:
            problem: What those who wait are told.
        """

    @abstractmethod
    def close(self, problem: KernelDiedError | None = None) -> None:
        """Disconnect for good.

        Args:
            problem: What those who wait are told; that it was shut down, when not given.
        """


def raise_failure(fields: dict[str, Any]) -> None:
    """Raise what the runtime raised.

    Args:
        fields: Content of a reply; nothing happens unless its status is "error".

    Raises:
        OhJupyterError: The error, of the same class as in the kernel.
    """
    if fields.get("status") != "error":
        return
    cls = getattr(errors, str(fields.get("ename")), KernelError)
    message = str(fields.get("evalue") or "The runtime gave no reason")
    if isinstance(cls, type) and issubclass(cls, WireError):
        raise cls(message, str(fields.get("field") or ""))
    if isinstance(cls, type) and issubclass(cls, OhJupyterError):
        raise cls(message)
    raise KernelError(message)
