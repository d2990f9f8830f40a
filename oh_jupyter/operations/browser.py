"""Operations on the browser that a person watches and uses."""

from __future__ import annotations

from dataclasses import dataclass, field

from oh_jupyter.operations.declaration import Operation


@dataclass(frozen=True)
class BrowserTab:
    """A tab of the browser.

    Attributes:
        title: Its title, or else its URL.
        active: Whether it is the one that is shown.
    """

    title: str
    active: bool


@dataclass(frozen=True)
class BrowserView:
    """The page in the browser, and who uses it.

    Attributes:
        held: Whether a person has taken it over.
        refused: Why no browser can be used here; "" if one can.
        session: Name of the browser's session; "" without one.
        number: Number of the picture; -1 if no browser runs.
        picture: The picture, a JPEG in base64; "" without one.
        width: Width of the viewport in the page's pixels.
        height: Height of the viewport in the page's pixels.
        scroll: Position of the viewport: x and y.
        url: URL of the page.
        tabs: The tabs.
    """

    held: bool
    refused: str
    session: str = ""
    number: int = -1
    picture: str = ""
    width: float = 0
    height: float = 0
    scroll: list[float] = field(default_factory=list)
    url: str = ""
    tabs: list[BrowserTab] = field(default_factory=list)


@dataclass(frozen=True)
class BrowserMark:
    """An element of a page on which agents can act.

    Attributes:
        bid: Its id in the action language.
        bbox: Its box in the viewport: x, y, width and height.
    """

    bid: str
    bbox: list[float]


@dataclass(frozen=True)
class WatchBrowser(Operation[BrowserView], scope="anyone"):
    """Wait for a picture other than the known one; return it with the state of the browser.

    Attributes:
        known: Number of the known picture; -1 for none.
        wait: Maximum number of seconds to wait.
    """

    known: int = -1
    wait: float = 0.0


@dataclass(frozen=True)
class UseBrowser(Operation[str], scope="person"):
    """Execute a person's actions; return the error of the first one that failed, or "".

    Agents wait until the browser is handed back.

    Attributes:
        actions: Calls of the action language, one per line.
    """

    actions: str


@dataclass(frozen=True)
class BrowserMarks(Operation[list[BrowserMark]], scope="person"):
    """Return the elements of the page that agents can act on, with their boxes."""


@dataclass(frozen=True)
class HoldBrowser(Operation[bool], scope="person"):
    """Take the browser over, or hand it back; return whether a person has it.

    Attributes:
        hold: Whether the person takes it over.
    """

    hold: bool
