"""Uploads and downloads that a kernel's runtime has begun."""

from __future__ import annotations

from dataclasses import dataclass

from oh_jupyter.server.links.kernel_link import KernelLink, Reply


@dataclass(frozen=True)
class Transfer:
    """An upload or download that was begun by a request; another generation knows nothing of it."""

    link: KernelLink
    begun: Reply

    async def request(self, operation: str, body: bytes | None = None) -> Reply:
        """Ask for the next step of it; a KernelDiedError if its runtime is gone."""
        return await self.link.request(
            operation,
            {"id": self.begun.fields["id"]},
            body,
            load=False,
            generation=self.begun.fields["generation"],
        )
