"""Hosts of the pages that an agent opens, which belong on the list of its sandbox's hosts."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from oh_jupyter.errors import HostError
from oh_jupyter.sandbox.hosts import Endpoint, listed_names, parse_endpoint


def page_endpoints(addresses: Iterable[str], workspace_dir: str) -> list[Endpoint]:
    """Return the hosts of the addresses that an Action of the browser opens.

    An address without a host, such as ``about:blank``, has none. Where a link or a redirect leads
    is not known before the Action.
    """
    endpoints = (_endpoint(address.strip(), workspace_dir) for address in addresses)
    return list(dict.fromkeys(each for each in endpoints if each is not None))


def _endpoint(address: str, workspace_dir: str) -> Endpoint | None:
    from oh_jupyter.browser.channel.addresses import DEFAULT_PORTS, typed_address

    try:
        parts = urlsplit(typed_address(address, workspace_dir))
        if parts.scheme not in DEFAULT_PORTS:
            return None
        return parse_endpoint(parts.netloc.rpartition("@")[2], DEFAULT_PORTS[parts.scheme])
    except (HostError, ValueError):  # the browser reports it
        return None


def page_origins(entries: Iterable[str]) -> tuple[str, ...]:
    """Return the origins that a browser may reach by a list of hosts; networks have none."""
    origins: list[str] = []
    for name, port in listed_names(tuple(entries)):
        if port is not None:
            origins.append(f"{name}:{port}")
        else:
            origins += [f"http://{name}", f"https://{name}"]
    return tuple(origins)
