"""Context that a person adds to a prompt, such as a cell, an error or a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oh_jupyter.text import shorten

MAX_TEXT_CHARS = 50_000
"""Maximum length of a text; its middle is omitted."""


@dataclass(frozen=True)
class Attachment:
    """Something that goes with a prompt.

    Attributes:
        name: Its name for the person and the agent.
        uri: Its address.
        text: Its contents; None for a file, which the agent reads itself.
    """

    name: str
    uri: str
    text: str | None = None

    def block(self, *, can_embed: bool) -> Any:
        """Return the content block of the Agent Client Protocol.

        Args:
            can_embed: Whether the agent accepts embedded resources; every agent accepts links.
        """
        import acp

        if self.text is None:
            return acp.resource_link_block(self.name, self.uri)
        text = shorten(
            f"{self.name}:\n{self.text}",
            MAX_TEXT_CHARS,
            keep="ends",
            marker="\n[{omitted} characters omitted]\n",
        )
        if can_embed:
            return acp.resource_block(acp.embedded_text_resource(self.uri, text))
        return acp.text_block(f'<context ref="{self.uri}">\n{text}\n</context>')
