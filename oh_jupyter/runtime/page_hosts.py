"""Hosts of the pages that an agent opens, which belong on the list of its sandbox's hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from oh_jupyter.errors import HostError
from oh_jupyter.events import Action, BrowseInteractiveAction, BrowseURLAction
from oh_jupyter.sandbox.hosts import Endpoint, listed_names, parse_endpoint

_OPENED = re.compile(r"\b(?:goto|new_tab|tab_new)\(\s*(?:url\s*=\s*)?(['\"])(?P<address>.*?)\1")


def page_endpoints(action: Action, workspace_dir: str) -> list[Endpoint]:
    """Return the hosts whose pages an Action of the browser opens by their address.

    An address without a host, such as ``about:blank``, has none. Where a link or a redirect leads
    is not known before the Action.
    """
    if isinstance(action, BrowseURLAction):
        addresses = [action.url]
    elif isinstance(action, BrowseInteractiveAction):
        addresses = [match["address"] for match in _OPENED.finditer(action.browser_actions)]
    else:
        return []
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
