"""``%oh_browse login``, ``record`` and ``pick``: what a person does in the pages."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from IPython.core.error import StdinNotImplementedError, UsageError

from oh_jupyter.kernel.api import Oh

__all__ = ["Recording", "log_in", "login_arguments", "pick", "record"]

IN_THE_PANEL = "in JupyterLab's browser (command OpenHands Browser)"


def has_display() -> bool:
    """Whether a window can be shown where the kernel runs."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def log_in(oh: Oh, url: str, name: str) -> None:
    """Let a person log in, and keep cookies and local storage for the session of that name."""
    browsers = oh.browsers
    if has_display():
        env, where = browsers.make(name, headless=False), "in the window"
    else:
        env, where = browsers.use(name), IN_THE_PANEL
    try:
        failed = oh.call(env.act, f"goto({url!r})")
        if failed:
            raise UsageError(failed)
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
        raise UsageError("nobody can be asked to log in here: run this in a notebook") from None


@dataclass(frozen=True)
class Recording:
    """What was done in the pages.

    Attributes:
        script: A Playwright script.
        magic: The same as a cell, which finds elements by their bids and places.
    """

    script: str
    magic: str

    def __repr__(self) -> str:
        return f"{self.script}\n{self.magic}"


def record(oh: Oh, line: str) -> Recording | None:
    """Begin to record, or stop and return what was recorded; a file gets the script."""
    word, _, file = line.partition(" ")
    if not word:
        oh.call(oh.browser.start_script)
        print(f"Recording what is done {IN_THE_PANEL} and by magics. End: %oh_browse record stop")
        return None
    if word != "stop":
        raise UsageError("it is %oh_browse record, and then %oh_browse record stop [FILE.py]")
    script, calls = oh.call(oh.browser.script)
    if file.strip():
        Path(file.strip().strip("'\"")).expanduser().write_text(script, "utf-8")
    return Recording(script, f"%%oh_browse\n{calls}\n")


def pick(oh: Oh) -> str:
    """Return the bid of the element that a person clicks."""
    print(f"Click an element {IN_THE_PANEL}.")
    return oh.call(oh.browser.pick)


def login_arguments(line: str) -> tuple[str, str]:
    """Address and name of ``URL --as NAME``, in any order."""
    name = re.search(r"(?:^|\s)--as[ =](\S+)", line)
    url = "" if name is None else (line[: name.start()] + line[name.end() :]).strip()
    if name is None or not url or " " in url:
        raise UsageError("it is %oh_browse login URL --as NAME")
    return url, name[1]
