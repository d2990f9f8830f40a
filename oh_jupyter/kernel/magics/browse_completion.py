"""Tab completion of ``%oh_browse``: commands, calls, and content of the browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from IPython.core.completer import CompletionContext
from IPython.core.interactiveshell import InteractiveShell

from oh_jupyter.events import BrowserOutputObservation, Event
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.magics.completion import Completion, complete_path

MAX_ADDRESSES = 200
"""Maximum number of remembered addresses."""
_WORD = re.compile(r"\S*\Z")
_BID = re.compile(r"^\t*\[(\w+)\] ", re.MULTILINE)
_OPTIONS = ("--axtree", "--help", "--no-picture")
EVAL_OPTIONS = (
    *("--agent", "--executor", "--headed", "--help", "--out", "--seeds", "--steps"),
    *("--timeout", "--trace", "--workers"),
)
_OPEN_CALL = re.compile(r"""\b([a-z_]+)\((?:[^()"']|"[^"]*"|'[^']*')*?(["']?[^\s"'(,]*)\Z""")


class _BrowserHistory:
    """Content that the browsers showed, read from the log as it grows."""

    def __init__(self, oh: Oh) -> None:
        self.bids: list[str] = []
        self.tabs: list[str] = []
        self.urls: dict[str, None] = {}
        self.close = oh.events.subscribe(self._note)

    def _note(self, event: Event) -> None:
        if not isinstance(event, BrowserOutputObservation) or not event.url:
            return
        self.tabs = list(event.open_pages_urls)
        self.bids = _BID.findall(event.content) or list(event.extra_element_properties)
        for url in (*self.tabs, event.url):
            if "://" in url:
                self.urls.pop(url, None)
                self.urls[url] = None
        while len(self.urls) > MAX_ADDRESSES:
            del self.urls[next(iter(self.urls))]

    def addresses(self) -> list[str]:
        """Return the visited addresses, latest first."""
        return list(reversed(self.urls))


class BrowseCompletion(Completion):
    """Completes the line of ``%oh_browse``, and calls in the body of ``%%oh_browse``."""

    def __init__(
        self, shell: InteractiveShell, oh: Oh, magic: Any, commands: Sequence[str]
    ) -> None:
        """Add the completion to a shell."""
        super().__init__(shell, "oh_browse", magic, {})
        self._commands = commands
        self._oh = oh
        self._seen = _BrowserHistory(oh)
        self._shell = shell

    def close(self) -> None:
        """Remove the completion from the shell."""
        super().close()
        self._seen.close()

    def _match(self, context: CompletionContext) -> dict[str, Any]:
        if context.cursor_line > 0 and context.full_text.lstrip().startswith("%%oh_browse"):
            argument, completions = self._in_call(context.text_until_cursor)
            return self._result(argument, completions)
        return super()._match(context)

    def find(self, typed: str) -> tuple[str, list[str]]:
        """Complete the last argument."""
        argument = _WORD.search(typed)[0]  # type: ignore[index]
        before = typed[: len(typed) - len(argument)].split()
        words = [word for word in before if word not in _OPTIONS]
        if not words and argument.startswith("-"):
            return argument, _with_prefix(argument, _OPTIONS)
        if not words and "(" not in argument:
            known = [*self._commands, *_calls(), *self._seen.addresses()]
            return argument, _with_prefix(argument, known)
        complete: dict[str, Callable[[list[str], str], Iterable[str]]] = {
            "eval": self._for_eval,
            "save": lambda _, argument: complete_path(argument),
            "session": self._sessions,
            "close": self._sessions,
        }
        if words and words[0] in complete:
            return argument, _with_prefix(argument, complete[words[0]](words[1:], argument))
        return self._in_call(typed) if "(" in typed else (argument, [])

    def _in_call(self, typed: str) -> tuple[str, list[str]]:
        """Complete an argument of a call, or the start of another call."""
        match = _OPEN_CALL.search(typed)
        if match is None:
            argument = re.search(r"[a-z_]*\Z", typed)[0]  # type: ignore[index]
            return argument, _with_prefix(argument, _calls())
        name, argument = match.groups()
        if name == "tab_focus":
            return argument, _with_prefix(argument, map(str, range(len(self._seen.tabs))))
        is_first = typed[: match.end() - len(argument)].rstrip().endswith("(")
        if name == "goto":
            values = self._seen.addresses()
        elif _takes_bid(name) and (is_first or name == "drag_and_drop"):
            values = self._seen.bids
        else:
            return argument, []
        quote = argument[:1] if argument[:1] in ("'", '"') else '"'
        quoted = [f"{quote}{value}{quote}" for value in values]
        beginning = argument if argument[:1] == quote else f"{quote}{argument}"
        return argument, _with_prefix(beginning, quoted)

    def _for_eval(self, words: list[str], argument: str) -> Iterable[str]:
        from oh_jupyter.browser.evaluation.tasks import TASKS

        namespace: dict[str, Any] = self._shell.user_ns
        if words and words[-1] == "--out":
            return complete_path(argument)
        if words and words[-1] == "--agent":
            hidden = self._shell.user_ns_hidden
            return sorted(n for n, v in namespace.items() if callable(v) and n not in hidden)
        return [*EVAL_OPTIONS] if argument.startswith("-") else [*TASKS, *EVAL_OPTIONS]

    def _sessions(self, words: list[str], argument: str) -> Iterable[str]:
        return [] if words else self._oh.browsers.names


def _calls() -> list[str]:
    from oh_jupyter.browser.channel.language import SIGNATURES

    return [f"{name}(" if signature.parameters else f"{name}()"
            for name, signature in SIGNATURES.items()]  # fmt: skip


def _takes_bid(name: str) -> bool:
    from oh_jupyter.browser.channel.language import SIGNATURES

    signature = SIGNATURES.get(name)
    return signature is not None and next(iter(signature.parameters), "").endswith("bid")


def _with_prefix(argument: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(argument)]
