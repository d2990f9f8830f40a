"""The registry of the Agent Client Protocol: agents of others, cached in the ledger."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from oh_jupyter.agents.commands import AgentCommand
from oh_jupyter.errors import LedgerError
from oh_jupyter.state.shared import open_ledger

logger = logging.getLogger(__name__)

FRESH_SECONDS = 24 * 3600
"""Age of the cache after which the registry is fetched again."""
RETRY_SECONDS = 3600
"""Time without another attempt after the registry was not reached."""
TIMEOUT_SECONDS = 3
MAX_BYTES = 4 * 1024**2
CHUNK_BYTES = 65536


def cached_agents() -> list[AgentCommand]:
    """Return the agents of the cached registry; none without a cache."""
    return _agents(_cached().get("registry"))


def fetch_agents(url: str) -> list[AgentCommand]:
    """Return the agents of a registry, from the cache if it is fresh, or cannot be renewed.

    Args:
        url: Address of its JSON; "" to use neither it nor the cache.
    """
    if not url:
        return []
    cached = _cached()
    known = cached.get("registry") if cached.get("url") == url else None
    age = FRESH_SECONDS if known else RETRY_SECONDS
    if cached.get("url") == url and 0 <= time.time() - cached.get("tried", 0) < age:
        return _agents(known)
    try:
        known = _download(url)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors
        logger.info("The registry of agents %s was not read: %s", url, error)
        age_left = FRESH_SECONDS - RETRY_SECONDS if known else 0
        _save({"url": url, "tried": time.time() - age_left, "registry": known})
    else:
        _save({"url": url, "tried": time.time(), "registry": known})
    return _agents(known)


def _download(url: str) -> dict[str, Any]:
    """Return a registry; raise OSError or ValueError if it is not there, too large or invalid."""
    import requests  # takes 5 MB of memory, and few kernels fetch a registry

    with requests.get(url, timeout=TIMEOUT_SECONDS, stream=True) as response:
        response.raise_for_status()
        data = bytearray()
        for chunk in response.iter_content(CHUNK_BYTES):
            data += chunk
            if len(data) > MAX_BYTES:
                raise ValueError(f"it has more than {MAX_BYTES} bytes")
    registry = json.loads(data)
    if not isinstance(registry, dict) or not isinstance(registry.get("agents"), list):
        raise ValueError("it has no list of agents")
    return registry


def _cached() -> dict[str, Any]:
    try:
        row = open_ledger().row("SELECT url, tried, registry FROM agent_registry")
    except LedgerError:
        return {}
    if row is None:
        return {}
    url, tried, text = row
    try:
        return {"url": url, "tried": tried, "registry": json.loads(text)}
    except ValueError:
        return {}


def _save(cached: dict[str, Any]) -> None:
    row = (cached["url"], cached["tried"], json.dumps(cached["registry"]))
    try:
        with open_ledger().transaction() as connection:
            connection.execute("DELETE FROM agent_registry")
            connection.execute("INSERT INTO agent_registry VALUES (?, ?, ?)", row)
    except (LedgerError, UnicodeError) as error:  # an address from a variable may be no text
        logger.info("The registry of agents is not cached: %s", error)


def _agents(registry: Any) -> list[AgentCommand]:
    """Return the well-formed agents of a registry."""
    entries = registry.get("agents") if isinstance(registry, dict) else None
    agents = [_agent(entry) for entry in entries or () if isinstance(entry, dict)]
    return [agent for agent in agents if agent is not None]


def _agent(entry: dict[str, Any]) -> AgentCommand | None:
    """Return an agent of the registry as it is started once it is installed."""
    name, ways = entry.get("id"), entry.get("distribution")
    if not isinstance(name, str) or not name.isprintable() or not isinstance(ways, dict):
        return None
    for way, install in (("npx", "npm install -g"), ("uvx", "uv tool install")):
        if isinstance(ways.get(way), dict) and isinstance(ways[way].get("package"), str):
            package = ways[way]["package"]
            command = (_program(package), *_words(ways[way].get("args")))
            npm = _unversioned(package) if way == "npx" else ""
            return AgentCommand(name, command, npm, f"{install} {_unversioned(package)}")
    binaries = ways.get("binary")
    for target in binaries.values() if isinstance(binaries, dict) else ():
        if isinstance(target, dict) and isinstance(target.get("cmd"), str):
            program = target["cmd"].replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
            page = entry.get("website") or entry.get("repository") or ""
            how = f"see {page}" if isinstance(page, str) and page else ""
            return AgentCommand(name, (program, *_words(target.get("args"))), installation=how)
    return None


def _unversioned(package: str) -> str:
    """Return the name of an npm or Python package without its release."""
    scope, at, rest = package.rpartition("@")
    name = scope if at and scope else f"{at}{rest}"
    return name.partition("==")[0]


def _program(package: str) -> str:
    """Return the program that a package usually installs."""
    return _unversioned(package).rpartition("/")[2]


def _words(words: Any) -> tuple[str, ...]:
    is_usable = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return tuple(words) if is_usable else ()
