"""Hosts that a box may reach: canonical names, the operator's list, and checks of addresses.

A host is canonicalised once, the decision is about the result, and exactly that is used. Nothing
here resolves a name.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from oh_jupyter.errors import ConfigError, HostError
from oh_jupyter.text import shorten

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

WEB_PORTS = (80, 443)
"""Ports of an entry without one."""

PRESETS: dict[str, tuple[str, ...]] = {
    "pypi": ("pypi.org", "files.pythonhosted.org"),
    "conda": ("conda.anaconda.org", "repo.anaconda.com"),
    "npm": ("registry.npmjs.org",),
    "crates": ("crates.io", "index.crates.io", "static.crates.io"),
    "go": ("proxy.golang.org", "sum.golang.org"),
    "debian": ("deb.debian.org", "security.debian.org"),
    "ubuntu": ("archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"),
    "github": ("github.com", "api.github.com", "codeload.github.com", "*.githubusercontent.com"),
    "huggingface": ("huggingface.co", "*.huggingface.co", "*.hf.co"),
}
"""Hosts of package indexes and of the like."""

_ENDPOINT = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]{1,5}))?", re.DOTALL)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""Last label of an address in any of its forms; no name ends so."""
_DEVIATING = frozenset("ßς\u200c\u200d")
"""Characters that the two standards of international names treat differently."""
MAX_NAME_CHARS = 253

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("192.0.0.0/24", "192.88.99.0/24"),  # Oracle's metadata and other services, 6to4
        "168.63.129.16/32",  # Azure's metadata
        *("2001::/23", "2002::/16", "3fff::/20"),  # tunnels that contain IPv4, documentation
    )
)


@dataclass(frozen=True)
class Endpoint:
    """A canonical host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def address(self) -> Address | None:
        """The host as an address, or None for a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None


def parse_endpoint(text: str, default_port: int | None = None) -> Endpoint:
    """Parse ``HOST:PORT`` strictly; raise HostError for anything else."""
    match = _ENDPOINT.fullmatch(text)
    port = int(match[2] or default_port or 0) if match else 0
    if match is None or not 0 < port < 65536:
        raise HostError(f"{_shown(text)} is not HOST:PORT with a port from 1 to 65535.", 400)
    return Endpoint(canonical_host(match[1]), port)


def canonical_host(text: str) -> str:
    """Return the canonical form of a host; raise HostError for an unusual one.

    That is a lower-case ASCII name without a dot at the end, or an address without brackets.
    """
    if text.startswith("["):
        return _canonical_ipv6(text[1:-1])
    if not _DEVIATING.isdisjoint(text):
        raise HostError(f"{_shown(text)} is ambiguous: write it in its xn-- form.", 400)
    try:
        name = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        name = ""
    labels = name.split(".")
    if len(name) > MAX_NAME_CHARS or not all(_LABEL.fullmatch(label) for label in labels):
        raise HostError(f"{_shown(text)} is not the name or address of a host.", 400)
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError:
            raise HostError(
                f"{_shown(text)} is not an address in its usual form: write four decimal numbers.",
                400,
            ) from None
    # Never resolved, because a name server could answer with anything.
    return "127.0.0.1" if labels[-1] == "localhost" else name


def _canonical_ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise HostError(f"[{_shown(text)}] is not an IPv6 address.", 400) from None
    if address.scope_id is not None or address.ipv4_mapped is not None:
        raise HostError(
            f"{_shown(text)} is not a plain IPv6 address: leave the zone out, and write an IPv4 "
            "address as four decimal numbers.",
            400,
        )
    return address.compressed


def is_public(address: Address) -> bool:
    """Return whether an address is on the internet: not private, local, shared or reserved."""
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return False
    is_special = address.is_multicast or address.is_reserved or not address.is_global
    return not is_special and not any(address in network for network in _NOT_PUBLIC)


@dataclass(frozen=True)
class _Entry:
    """An entry of the list: a name, a name with ``*.`` in front, or a network."""

    name: str
    network: Network | None
    port: int | None

    def has_port(self, port: int) -> bool:
        return port in WEB_PORTS if self.port is None else port == self.port

    def has_address(self, address: Address) -> bool:
        return self.network is not None and address in self.network

    def has_host(self, endpoint: Endpoint) -> bool:
        if (address := endpoint.address) is not None:
            return self.has_address(address)
        if self.name.startswith("*."):
            return endpoint.host.endswith(self.name[1:])
        return endpoint.host == self.name


@dataclass(frozen=True)
class AllowList:
    """The operator's list of hosts."""

    entries: tuple[_Entry, ...]

    def lists(self, endpoint: Endpoint) -> bool:
        """Return whether a host and its port are listed."""
        return any(
            each.has_host(endpoint) and each.has_port(endpoint.port) for each in self.entries
        )

    def may_dial(self, address: Address, port: int) -> bool:
        """Return whether the address of an allowed host may be dialled.

        An address that is not public must itself be listed: whatever a name resolves to is decided
        by others.
        """
        return is_public(address) or any(
            each.has_address(address) and each.has_port(port) for each in self.entries
        )


@lru_cache(maxsize=8)
def parse_hosts(entries: tuple[str, ...]) -> AllowList:
    """Parse the operator's list; raise ConfigError for an invalid entry."""
    return AllowList(tuple(entry for text in entries for entry in _entries(text.strip())))


def listed_names(entries: tuple[str, ...]) -> list[tuple[str, int | None]]:
    """Return the names and single addresses of a list with their ports, None for the web's."""
    names = []
    for each in parse_hosts(entries).entries:
        if each.network is None:
            names.append((each.name, each.port))
        elif each.network.num_addresses == 1:
            host = each.network.network_address
            names.append((f"[{host}]" if host.version == 6 else str(host), each.port))
    return names


def _entries(text: str) -> Iterable[_Entry]:
    if text in PRESETS:
        return [each for host in PRESETS[text] for each in _entries(host)]
    try:
        return [_entry(text)]
    except (HostError, ValueError) as error:
        raise ConfigError(
            f"sandbox_hosts has the entry {text!r:.100}, which is no host, address or preset: "
            f"{str(error).rstrip('.')}. Examples: example.org, *.example.org, example.org:8443, "
            f"10.0.0.0/8, [::1]:8000. Presets: {', '.join(PRESETS)}"
        ) from error


def _entry(text: str) -> _Entry:
    match = re.fullmatch(r"(\*\.)?(\[[^\]]*\]|[^:]*?)(/[0-9]{1,3})?(?::([0-9]{1,5}))?", text)
    if match is None:
        raise HostError("write an IPv6 address in brackets.")
    wildcard, host, length, port = match.groups()
    endpoint = parse_endpoint(f"{host}:{port or 443}")
    if endpoint.address is None and not wildcard and not port and "." not in endpoint.host:
        raise HostError("a name without a dot needs a port.")
    if endpoint.address is None and length:
        raise HostError("a name has no prefix length.")
    if endpoint.address is not None and wildcard:
        raise HostError("an address has no wildcard.")
    network = None
    if endpoint.address is not None:
        network = ipaddress.ip_network(f"{endpoint.host}{length or ''}")
    return _Entry(f"{wildcard or ''}{endpoint.host}", network, int(port) if port else None)


def _shown(text: str) -> str:
    """Return a text of others for a message, on one line and without a password."""
    return ascii(shorten(text.rpartition("@")[2], 100))


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
