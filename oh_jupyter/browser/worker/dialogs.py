"""Dialogs of pages, each answered immediately, as prepared, and reported in a notice."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oh_jupyter.text import shorten

if TYPE_CHECKING:
    from playwright.async_api import Dialog

MAX_MESSAGES, MAX_MESSAGE_CHARS = 3, 500
"""Maximum messages from one kind of dialog in a notice, and characters of each."""
STEPS_PREPARED = 2
"""Steps for which a prepared answer is valid: the step that prepares it, and the next one."""
STAYED = (
    "The page asked whether to leave it, because unsaved input would be lost; it stays open. "
    "To leave anyway, put handle_dialog(accept=True) before the action."
)


@dataclass
class _Answer:
    accept: bool
    text: str
    steps_left: int = STEPS_PREPARED


@dataclass
class Dialogs:
    """Handler of dialogs; adds actions that a dialog prevented to ``losses``."""

    accept_all: bool
    notices: list[str]
    losses: list[str]
    _prepared: list[_Answer] = field(default_factory=list)
    _shown: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    _leaves: bool = False
    _stayed: asyncio.Event = field(default_factory=asyncio.Event)

    def begin_step(self) -> None:
        """Start a step and drop expired answers."""
        self._shown.clear()
        self._stayed.clear()
        for answer in self._prepared:
            answer.steps_left -= 1
        self._prepared = [answer for answer in self._prepared if answer.steps_left > 0]

    def prepare(self, accept: bool, text: str) -> None:
        """Prepare the answer to one dialog that asks something."""
        self._prepared.append(_Answer(accept, text))

    @property
    def kept_page(self) -> bool:
        """Whether a page stayed open in this step because it asked before leaving."""
        return STAYED in self.losses

    async def until_kept(self) -> None:
        """Wait until a page stays open in this step because it asked before leaving."""
        await self._stayed.wait()

    @contextlib.contextmanager
    def leaving(self) -> Iterator[None]:
        """Leave pages within the block even if they ask to stay."""
        before, self._leaves = self._leaves, True
        try:
            yield
        finally:
            self._leaves = before

    def answer(self, dialog: Dialog) -> Awaitable[Any]:
        """Answer a dialog and report it."""
        is_leaving = dialog.type == "beforeunload"
        accept, text = self.accept_all, ""
        if dialog.type == "alert" or (is_leaving and self._leaves):
            accept = True
        elif self._prepared:
            answer = self._prepared.pop(0)
            accept, text = answer.accept, answer.text
        if not is_leaving:
            self._note(dialog, accept)
        elif not accept and not self.kept_page:
            self.losses.append(STAYED)
            self._stayed.set()
        if not accept:
            return dialog.dismiss()
        return dialog.accept(text or dialog.default_value)

    def _note(self, dialog: Dialog, accept: bool) -> None:
        """Report a dialog's outcome; dialogs of one kind share a notice."""
        kind, done = dialog.type, "accepted" if accept else "dismissed"
        messages = self._shown.setdefault((kind, done), [])
        before = _notice(kind, done, messages)
        messages.append(shorten(dialog.message, MAX_MESSAGE_CHARS))
        notice = _notice(kind, done, messages)
        if before in self.notices:
            self.notices[self.notices.index(before)] = notice
        else:
            self.notices.append(notice)


def _notice(kind: str, done: str, messages: list[str]) -> str:
    excerpt = ", ".join(map(repr, messages[:MAX_MESSAGES]))
    if len(messages) == 1:
        text = f"The page showed {kind} {excerpt}; it was {done}."
    else:
        text = f"The page showed {kind} {len(messages)} times, first {excerpt}; each was {done}."
    if done == "dismissed":
        argument = ", text='…'" if kind == "prompt" else ""
        text += f" To accept one, put handle_dialog(accept=True{argument}) before the action."
    return text
