"""The model that merges drafts: any endpoint that speaks OpenAI's chat API."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from oh_jupyter.config import Settings
from oh_jupyter.editor.draft.prompts import updated_code
from oh_jupyter.errors import DraftError

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["DraftModel"]

_MAX_TRIES = 3  # as in OpenHands
_TIMEOUT_SECONDS = 120.0  # seconds for one answer


class DraftModel:
    """Client of the configured model."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; nothing is imported or connected yet."""
        self.name = settings.draft_model or ""
        self.rounds = settings.draft_correct_num
        self._base_url = settings.draft_base_url
        self._api_key = settings.draft_api_key

    @cached_property
    def _client(self) -> OpenAI:
        try:
            from openai import OpenAI, OpenAIError
        except ImportError:
            raise DraftError(
                "The setting draft_model needs the package openai: pip install oh_jupyter[draft]"
            ) from None
        try:
            # Where they are not set, the client takes OPENAI_BASE_URL and OPENAI_API_KEY.
            return OpenAI(
                base_url=self._base_url, api_key=self._api_key or None, timeout=_TIMEOUT_SECONDS
            )
        except OpenAIError as problem:
            raise DraftError(
                f"The model {self.name!r} cannot be used: {problem} "
                "The settings are draft_base_url and draft_api_key."
            ) from None

    def ask(self, prompt: str, original: str) -> str:
        """Code in the first reply that has some."""
        client = self._client
        from openai import OpenAIError

        for _ in range(_MAX_TRIES):
            try:
                completion = client.chat.completions.create(
                    model=self.name, messages=[{"role": "user", "content": prompt}]
                )
            except OpenAIError as problem:
                said = str(problem).replace(client.api_key, "***")
                raise DraftError(
                    f"The model {self.name!r} at {client.base_url} could not be asked: {said}"
                ) from None
            reply = completion.choices[0].message.content if completion.choices else None
            code = updated_code(reply or "", original)
            if code is not None:
                return code
        raise DraftError(
            "Failed to get new file contents. "
            "Please try to reduce the number of edits and try again."
        )
