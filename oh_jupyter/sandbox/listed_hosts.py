"""Access to the operator's list of hosts only, where nobody can be asked."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Address, Endpoint, parse_hosts

logger = logging.getLogger(__name__)

MAX_LOGGED = 1000
"""Maximum number of hosts that are logged, each once."""


class ListedHosts:
    """Decides which hosts a whole kernel may reach.

    Attributes:
        entries: The list, as in the setting ``sandbox_hosts``.
        owner: Name of the kernel in the log.
    """

    def __init__(self, entries: Iterable[str], owner: str = "a sandbox") -> None:
        """Take a list; raise ConfigError for an invalid entry."""
        self.entries = tuple(entries)
        self.owner = owner
        self._logged: set[str] = set()
        parse_hosts(self.entries)

    async def check(self, endpoint: Endpoint) -> None:
        """Raise HostError unless the host is listed."""
        if not parse_hosts(self.entries).lists(endpoint):
            self._log(f"{self.owner} may not reach {endpoint}")
            raise HostError(
                f"{endpoint} is refused: it is not listed. If it is needed, ask the user to add it "
                "to sandbox_hosts."
            )
        self._log(f"{self.owner} reaches {endpoint}")

    def may_dial(self, address: Address, port: int) -> bool:
        """Return whether the address of a listed host may be dialled."""
        return parse_hosts(self.entries).may_dial(address, port)

    def note_failure(self, endpoint: Endpoint, error: HostError) -> None:
        """Log that a listed host was not reached."""
        self._log(f"{self.owner} did not reach {endpoint}: {error}")

    def _log(self, sentence: str) -> None:
        if sentence not in self._logged and len(self._logged) < MAX_LOGGED:
            self._logged.add(sentence)
            logger.info("%s", sentence)
