"""Pool of named browsers, one of which is current."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oh_jupyter.browser.env import BrowserEnv
from oh_jupyter.config import Settings, state_home
from oh_jupyter.errors import BrowserError

DEFAULT_NAME = "default"
"""Name of the initial browser."""


def check_name(name: str) -> None:
    """Raise an error for an invalid session name; names become parts of paths."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise BrowserError(
            f"{name!r} cannot be the name of a session: use letters, digits, _, - and periods."
        )


def login_path(name: str) -> Path:
    """Return the file with the initial cookies and local storage of a session."""
    return state_home() / "logins" / f"{name}.json"


def har_path(setting: str | None, name: str) -> Path | None:
    """Return the session's own file for its requests, or None."""
    if not setting:
        return None
    path = Path(setting).expanduser()
    return path if name == DEFAULT_NAME else path.with_stem(f"{path.stem}-{name}")


class BrowserPool:
    """Browsers that share settings, but no cookies, tabs or crashes."""

    def __init__(self, settings: Settings) -> None:
        """Create a pool; no browser starts yet."""
        self.name = DEFAULT_NAME
        self._settings = settings
        self._browsers: dict[str, BrowserEnv] = {}
        self._secrets: set[str] = set()
        self._lock = threading.Lock()

    @property
    def current(self) -> BrowserEnv:
        """Current browser, created on first use."""
        with self._lock:
            if self.name not in self._browsers:
                self._browsers[self.name] = self.make(self.name)
            return self._browsers[self.name]

    @property
    def names(self) -> list[str]:
        """Names of the existing browsers."""
        with self._lock:
            return list(self._browsers)

    def use(self, name: str) -> BrowserEnv:
        """Make a browser current; a new name creates a new browser."""
        check_name(name)
        self.name = name
        return self.current

    def close(self, name: str | None = None) -> None:
        """Close a browser; the next use of its name starts a new one."""
        with self._lock:
            browser = self._browsers.pop(name or self.name, None)
        if browser is not None:
            browser.close()

    def close_all(self) -> None:
        """Close all browsers."""
        for name in list(self._browsers):
            self.close(name)

    def mask(self, secrets: Iterable[str]) -> None:
        """Hide texts in the observations and errors of all current and future browsers."""
        with self._lock:
            self._secrets.update(secrets)
            for browser in self._browsers.values():
                browser.mask(self._secrets)

    def status(self, timeout: float = 5) -> list[dict[str, Any]]:
        """Return each browser's name, whether it is current, and whether it responds."""
        with self._lock:
            browsers = dict(self._browsers)
        return [
            {"name": name, "current": name == self.name, "alive": browser.check_alive(timeout)}
            for name, browser in browsers.items()
        ]

    def keep_login(self, name: str, env: BrowserEnv) -> Path:
        """Save a browser's cookies and local storage for future browsers of that name."""
        path = login_path(name)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        env.storage_state(path)
        with self._lock:
            current = self._browsers.get(name)
        if current is not None and current is not env:
            self.close(name)
        return path

    def make(self, name: str, *, headless: bool | None = None) -> BrowserEnv:
        """Create a browser with the settings of that name, outside the pool."""
        check_name(name)
        settings = self._settings
        login = login_path(name)
        state = str(login) if login.is_file() else settings.browser_storage_state
        profile = settings.browser_profile
        if profile and name != DEFAULT_NAME:
            # Only one browser at a time can use a profile.
            profile = f"{profile}-{name}"
        return BrowserEnv(
            settings.browsergym_eval_env or None,
            headless=settings.browser_headless if headless is None else headless,
            executable_path=settings.browser_path,
            storage_state=state,
            user_data_dir=profile,
            device=settings.browser_device,
            idle_seconds=settings.browser_idle_seconds or None,
            har_path=har_path(settings.browser_har, name),
            cdp_url=settings.browser_cdp_url,
            allowed_origins=settings.browser_allowed_origins,
            blocked_origins=settings.browser_blocked_origins,
            secrets=self._secrets,
        )
