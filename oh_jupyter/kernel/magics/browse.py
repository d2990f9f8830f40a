"""``%oh_browse``: the browser."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.error import StdinNotImplementedError, UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument
from IPython.display import display

import oh_jupyter.kernel.display.html as html
from oh_jupyter.events import Observation
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.observations import picture_in_cell
from oh_jupyter.kernel.display.table import Table
from oh_jupyter.kernel.magics.base import OhMagics, silenced_by_semicolon
from oh_jupyter.kernel.magics.browse_completion import BrowseCompletion
from oh_jupyter.kernel.magics.options import leading_options, magic_options, wants_help

PICTURE_WIDTH_PX = 760
"""Width of the picture in a cell, in CSS pixels; the page has 1280."""
DOWNLOADS_DIR = ".downloads"

_CALL = re.compile(r"[A-Za-z_]+\(|GET_EVAL_(GOAL|REWARDS)$")
_EVAL = re.compile(r"\s*(--?\S+\s+)*eval(\s|$)")
_WITH_ARGUMENT = {"save", "login", "session", "close", "elements", "eval"}


@magics_class
class BrowseMagics(OhMagics):
    """Open pages, act on them, and inspect the browser."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        """Register commands and completion."""
        super().__init__(shell, oh)
        self._commands: dict[str, Callable[[str], Any]] = {
            "text": self._text,
            "marks": self._marks,
            "tabs": self._tabs,
            "tables": self._tables,
            "links": self._links,
            "forms": self._forms,
            "elements": self._elements,
            "downloads": self._downloads,
            "console": self._console,
            "save": self._save,
            "login": self._login,
            "pick": lambda _: pick(self.oh),
            "session": self._session,
            "status": self._status,
            "close": self._close,
            "eval": self._eval,
        }
        commands = tuple(self._commands)
        self._completions.append(BrowseCompletion(shell, oh, self.oh_browse, commands))

    @no_var_expand
    @silenced_by_semicolon
    @magic_options(
        examples="""
        %oh_browse example.org
        %oh_browse click("12")
        %oh_browse --no-picture fill("a5", "tea")
        """,
        is_leading=True,
    )
    @argument("--no-picture", action="store_true", help="do not show the page")
    @argument("--axtree", action="store_true", help="return the accessibility tree as an object")
    @line_cell_magic
    def oh_browse(self, line: str, cell: str | None = None) -> Any:
        """Open a page, or act on the open one.

        ``%oh_browse URL`` opens a page; ``%oh_browse click("12")`` acts on it, and so does
        ``%%oh_browse`` with one or more calls in the body. The page is shown with its
        marks; the value is the Observation. Without arguments, it shows the page.

        Commands for the open page: ``text``; ``marks``, its picture; ``tabs``;
        ``tables``, ``links``, ``forms``, and ``elements CSS`` or ``elements role=ROLE``, as
        pandas DataFrames; ``console`` and requests of the next moment;
        ``downloads``. ``save FILE`` saves cookies and local storage for later sessions;
        ``login URL --as NAME`` lets you log in, in a window or in JupyterLab's
        browser, and saves that for the named session; ``pick`` returns the bid of the element
        that you click; ``session [NAME]`` switches to another browser; ``status``; ``close``.
        ``eval TASK … --agent FUNCTION`` runs tasks, ``eval show FILE`` shows their results
        (see ``eval --help``).
        """
        # The command eval has its own help.
        if not _EVAL.match(line) and wants_help(self.oh_browse, line):
            return None
        options, rest = leading_options(self.oh_browse, line)
        if options.help:
            return self.oh_browse("--help")
        if cell is None and not rest:
            sessions = self.oh.call(self.oh.browsers.status)
            if not any(each["current"] and each["alive"] for each in sessions):
                raise UsageError('say where to go: %oh_browse URL, or what to do: click("12")')
            rest = "noop(0)"
        word, _, arguments = rest.partition(" ")
        if cell is None and word in self._commands:
            if arguments.strip() and word not in _WITH_ARGUMENT:
                raise UsageError(f"{word} takes no arguments: %oh_browse {word}")
            return self._commands[word](arguments.strip())
        observation: Observation
        if cell is None and not _CALL.match(rest):
            url = self._address(self.expand(rest))
            observation = self.oh.browse(url, return_axtree=options.axtree)
        else:
            actions = "\n".join(filter(None, (rest, cell)))
            observation = self.oh.interact(actions.strip(), return_axtree=options.axtree)
        from oh_jupyter.kernel.display.observations import screenshot

        picture = None if options.no_picture else screenshot(observation)
        if picture is not None:
            _show(picture, getattr(observation, "last_browser_action_error", ""))
        return observation

    def _address(self, text: str) -> str:
        """Return the URL or the path of a file for a person's input."""
        typed, text = text, text.strip().strip("'\"")
        if not text:
            raise UsageError("the address is empty; use %oh_browse URL")
        if re.match(r"[a-z][a-z0-9+.-]*:(?!\d)", text):
            return text
        path = os.path.join(self.oh.status()["workspace_dir"], os.path.expanduser(text))
        if text.startswith(("/", ".", "~")) or os.path.isfile(path):
            if not os.path.exists(path):
                raise UsageError(f"there is no file {path}")
            return path
        if call := _as_call(typed):
            raise UsageError(f"write an action as a call: %oh_browse {call}")
        if re.search(r"\s", text):
            raise UsageError(
                f"{text!r} is neither an address nor a command. Commands: "
                f"{', '.join(self._commands)}; an address has no blanks"
            )
        if re.fullmatch(r"\w+", text) and text != "localhost":
            raise UsageError(
                f"there is no command {text!r}. Commands: {', '.join(self._commands)}; the host "
                f"of that name is http://{text}"
            )
        return f"http://{text}"

    def _look(self, *parts: str) -> dict[str, Any]:
        """Observe the page without acting on it."""
        browser = self.oh.browser
        observation: dict[str, Any] = self.oh.call(browser.step, "noop(0)", include=parts)
        return observation

    def _text(self, _: str) -> None:
        from oh_jupyter.browser.channel.addresses import shortened_urls

        print(shortened_urls(self._look("text_content")["text_content"].rstrip()))

    def _marks(self, _: str) -> None:
        from base64 import b64decode

        picture = self._look("screenshot", "set_of_marks", "extra_element_properties")
        _show(b64decode(picture["set_of_marks"].partition(",")[2]))

    def _tabs(self, _: str) -> Table:
        from oh_jupyter.browser.channel.addresses import shortened_url

        observation = self._look()
        rows = [
            (
                number,
                "→" if number == observation["active_page_index"] else "",
                title,
                shortened_url(url),
            )
            for number, (title, url) in enumerate(
                zip(observation["open_pages_titles"], observation["open_pages_urls"], strict=True)
            )
        ]
        return Table(("tab", "active", "title", "url"), tuple(rows))

    def _tables(self, _: str) -> list[Any]:
        return self.oh.tables()

    def _links(self, _: str) -> Any:
        return self.oh.links()

    def _forms(self, _: str) -> Any:
        return self.oh.forms()

    def _elements(self, line: str) -> Any:
        if not line:
            raise UsageError("say which: %oh_browse elements CSS, or elements role=button")
        role = re.fullmatch(r"role=(\w+)", line)
        if role is not None:
            return self.oh.elements(role=role[1])
        return self.oh.elements(self.expand(line))

    def _console(self, _: str) -> Table:
        from oh_jupyter.browser.channel.addresses import shortened_url, shortened_urls

        observation = self._look("console_messages", "network_requests")
        rows = [
            ("console", item["type"], shortened_urls(item["text"]))
            for item in observation["console_messages"]
        ]
        for item in observation["network_requests"]:
            outcome = item["failure"] or item["status"]
            rows.append(("request", outcome, f"{item['method']} {shortened_url(item['url'])}"))
        return Table(("what", "kind", "text"), tuple(rows))

    def _downloads(self, _: str) -> Table:
        folder = Path(self.oh.status()["workspace_dir"]) / DOWNLOADS_DIR
        files = sorted(folder.glob("[!.]*"))  # not the .gitignore that we put there
        rows = [(path.name, path.stat().st_size, str(path)) for path in files]
        return Table(("name", "size", "path"), tuple(rows))

    def _save(self, line: str) -> None:
        if not line:
            raise UsageError("say where to: %oh_browse save FILE")
        path = Path(self.expand(line.strip("'\""))).expanduser()
        state = self.oh.call(self.oh.browser.storage_state, path)
        print(f"{len(state['cookies'])} cookies, {len(state['origins'])} origins → {path}")

    def _login(self, line: str) -> None:
        url, name = login_arguments(self.expand(line))
        log_in(self.oh, self._address(url), name)

    def _session(self, name: str) -> Table:
        if name:
            self.oh.browsers.use(name)
        rows = [
            ("→" if item["current"] else "", item["name"]) for item in self.oh.browsers.status()
        ]
        return Table(("current", "session"), tuple(rows))

    def _status(self, _: str) -> Table:
        rows = [
            (item["name"], "→" if item["current"] else "", "yes" if item["alive"] else "no")
            for item in self.oh.call(self.oh.browsers.status)
        ]
        return Table(("session", "current", "running"), tuple(rows))

    def _close(self, name: str) -> None:
        names = self.oh.browsers.names
        if name and name not in names:
            raise UsageError(
                f"there is no session {name!r}. Sessions: {', '.join(names) or 'none'}"
            )
        self.oh.call(self.oh.browsers.close, name or None)

    def _eval(self, line: str) -> Any:
        from oh_jupyter.kernel.magics.evaluate import run_evaluation

        shell: Any = self.shell
        return run_evaluation(line, shell.user_ns)


def _show(picture: bytes, error: str = "") -> None:
    """Show a picture of the page, below the error of a failed action."""
    if error:
        card = html.card(html.output_block(error, "error"), tone="error")
        display({"text/plain": error, "text/html": card}, raw=True)
    display(picture_in_cell(picture, PICTURE_WIDTH_PX, "The page, with marks"))


IN_THE_PANEL = "in JupyterLab's browser (command OpenHands Browser)"


def has_display() -> bool:
    """Return whether the kernel's machine can show a window."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def log_in(oh: Oh, url: str, name: str) -> None:
    """Let a person log in, and save cookies and local storage for a session."""
    browsers = oh.browsers
    if has_display():
        env, where = browsers.make(name, headless=False), "in the window"
    else:
        env, where = browsers.use(name), IN_THE_PANEL
    try:
        error = oh.call(env.act, f"goto({url!r})")
        if error:
            raise UsageError(error)
        _ask(f"Log in to {url} {where}, then press Enter here. ")
        path = oh.call(browsers.keep_login, name, env)
    finally:
        if has_display():
            oh.call(env.close)
    browsers.use(name)
    print(f"Session {name!r} is logged in, here and after %oh_browse session {name}: {path}")


def _ask(prompt: str) -> None:
    try:
        input(prompt)
    except StdinNotImplementedError:
        raise UsageError("no input is possible here; run this in a notebook") from None


def pick(oh: Oh) -> str:
    """Return the bid of the element that a person clicks."""
    print(f"Click an element {IN_THE_PANEL}.")
    return oh.call(oh.browser.pick)


def login_arguments(line: str) -> tuple[str, str]:
    """Return address and name from ``URL --as NAME``, in any order."""
    name = re.search(r"(?:^|\s)--as[ =](\S+)", line)
    url = "" if name is None else (line[: name.start()] + line[name.end() :]).strip()
    if name is None or not url or " " in url:
        raise UsageError("use %oh_browse login URL --as NAME")
    return url, name[1]


def _as_call(text: str) -> str:
    """Return the call for an action that was written as a command, or ""."""
    from oh_jupyter.browser.channel.language import SIGNATURES

    name, *rest = text.split(maxsplit=1)
    if name not in SIGNATURES:
        return ""
    try:
        arguments = shlex.split(rest[0]) if rest else []
    except ValueError:  # an apostrophe in a text
        arguments = rest[0].split()
    return f"{name}({', '.join(json.dumps(each, ensure_ascii=False) for each in arguments)})"
