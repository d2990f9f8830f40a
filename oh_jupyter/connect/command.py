"""The command ``oh-jupyter connect``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from oh_jupyter.connect.clients import CLIENTS, NAME, Client, Target
from oh_jupyter.connect.entries import notebook_of, remove_entry, set_entry, show_entry
from oh_jupyter.errors import ConfigError, ServerError, ServerNotFoundError
from oh_jupyter.events.actor import SCOPES
from oh_jupyter.installed import find_program
from oh_jupyter.loopback import is_local
from oh_jupyter.server.running import (
    NOT_RUNNING,
    RunningServer,
    describe_failure,
    find_server,
    server_at,
)
from oh_jupyter.server.tokens import ScopedTokens

CHECK_SECONDS = 30.0
"""Timeout of an agent's first message."""

RUNTIME_VARIABLES = ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "XDG_DATA_HOME")
"""Variables that change where running servers are noted; clients do not pass them on."""

QUESTION = "Which variables are there in my notebook?"


def add_connect(commands: Any) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "connect",
        help="let an agent's client use the notebook: claude, codex, gemini, ...",
        description="Write our MCP server into the configuration file of an agent's client.",
    )
    parser.set_defaults(run=connect)
    parser.add_argument("client", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--notebook", help="an open notebook, whose kernel the tools use")
    url = "write this address of a Jupyter server instead of the command that finds the local one"
    parser.add_argument("--url", help=url)
    parser.add_argument("--token", help="the token for --url")
    where = parser.add_mutually_exclusive_group()
    for scope, meaning in (
        ("user", "for all your projects"),
        ("project", "for this directory only"),
    ):
        where.add_argument(
            f"--{scope}", action="store_const", const=scope, dest="scope", help=meaning
        )
    trust = "have only JupyterLab ask you, by the setting confirmation, and not the client as well"
    parser.add_argument("--trust", action="store_true", help=trust)
    parser.add_argument(
        "--scope",
        dest="scopes",
        metavar="SCOPES",
        help="what the agent may do, such as read,edit: it gets a token of its own that allows no "
        f"more ({', '.join(SCOPES)})",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print the entry instead of writing it")
    what.add_argument("--remove", action="store_true", help="remove the entry")


def connect(options: argparse.Namespace) -> int:
    """Write, print or remove the entry in a client's file; return the exit status."""
    client = CLIENTS.get(options.client)
    if client is None:
        raise ConfigError(f"there is no client {options.client!r}. Known: {', '.join(CLIENTS)}")
    if options.trust and not (client.trust or client.rule):
        raise ConfigError(f"{client.title} has no file that allows tools; allow them when it asks")
    scope, file = _file(client, options.scope)
    rule = client.rule[0] if client.rule else None
    rule_file = client.rule_file(scope, Path.cwd())
    if options.remove:
        if rule and rule_file:
            _change(rule_file, lambda text: remove_entry(rule, text))
        before, after = _change(file, lambda text: remove_entry(client.location, text))
        _revoke(client)
        if after == before:
            print(f"{client.title}: no {NAME} in {file}")
        else:
            print(f"{client.title}: removed {NAME} from {file} (backup: {backup_of(file)})")
        return 0
    target, server = _target(options)
    if options.scopes is not None:
        path = "" if server is None or options.notebook is None else server.path
        target = _scoped(target, client, options, path)
    entry = client.entry(target, options.trust)
    if options.print:
        print(f"# {file}", file=sys.stderr)
        print(show_entry(client.location, entry), end="")
        return 0
    decided = client.trust if options.trust else ()
    before, after = _change(
        file,
        lambda text: set_entry(client.location, text, entry, decided),
        private=target.server is not None or options.scopes is not None,
    )
    if options.trust and rule and rule_file:
        _change(rule_file, lambda text: set_entry(rule, text, rule.name))
    print("\n".join(_report(client, file, target, server, before, after)))
    if options.trust:
        print(
            f"{client.title} does not ask before it uses our tools: JupyterLab does, by the "
            "setting confirmation; with the value never, nobody does"
        )
    return 0


def _change(file: Path, change: Callable[[str], str], *, private: bool = False) -> tuple[str, str]:
    """Edit a file; return the text before and after, or raise ConfigError."""
    try:
        before = read_text(file)
        after = change(before)
        if after != before:
            write_text(file, after, private=private)
    except ConfigError as error:
        raise ConfigError(f"{file} is unchanged: {error}") from error
    return before, after


def _file(client: Client, scope: str | None) -> tuple[str, Path]:
    """Return the scope and its file."""
    for each in (scope,) if scope else ("user", "project"):
        if file := client.file(each, Path.cwd()):
            return each, file
    other = "--project" if scope == "user" else "--user"
    raise ConfigError(f"{client.title} has no such file for MCP servers; use {other}")


def _target(options: argparse.Namespace) -> tuple[Target, RunningServer | None]:
    """Return the target to write, and the running server that it leads to, or None."""
    if options.url is not None:
        if not options.token and (address := oauth_address(options.url)):
            return _oauth_target(address, options.notebook), None
        server = server_at(options.url, options.token or "", options.notebook)
        _check(server)
        return Target(server=server), server
    if options.token is not None:
        raise ConfigError(
            "--token needs --url. Add that, or omit --token: the command finds the local server "
            "and its token"
        )
    notebook = () if options.notebook is None else ("--notebook", str(options.notebook))
    variables = {name: os.environ[name] for name in RUNTIME_VARIABLES if os.environ.get(name)}
    target = Target((_program(), "mcp", *notebook), variables)
    try:
        server = find_server(options.notebook, prefer_open=True)
    except ServerNotFoundError:
        return target, None
    _check(server)
    return target, server


def _oauth_target(address: str, notebook: str | None) -> Target:
    if notebook is not None:
        raise ConfigError(
            f"{address} is for all notebooks of its user; omit --notebook, and name the notebook "
            "to the agent"
        )
    return Target(oauth_address=address)


def _scoped(target: Target, client: Client, options: argparse.Namespace, path: str) -> Target:
    """Return a target with a new token of these scopes, and of the notebook with a path, if any.

    Raises ConfigError if that is impossible.
    """
    if target.server is not None or target.oauth_address:
        raise ConfigError(
            "--scope makes a token for the servers of this machine. For --url, make one there with "
            "oh-jupyter token, and pass it as --token"
        )
    if options.notebook is not None and not path:
        raise ConfigError(f"the token is for an open notebook: open {options.notebook} first")
    scopes = [scope.strip() for scope in options.scopes.split(",") if scope.strip()]
    token, secret = ScopedTokens().create(scopes, notebook=path, label=client.title)
    _revoke(client, but=token.id)
    return replace(target, environment={**target.environment, "OH_TOKEN": secret})


def _revoke(client: Client, but: str = "") -> None:
    """Revoke the tokens that earlier entries of a client held."""
    tokens = ScopedTokens()
    for token in tokens.list():
        if token.label == client.title and token.id != but:
            tokens.revoke(token.id)


def _program() -> str:
    """Return the absolute path of our program: clients do not know this environment."""
    beside = Path(sys.executable).with_name("oh-jupyter")
    program = str(beside) if beside.exists() else find_program("oh-jupyter")
    if program is None:
        raise ConfigError("oh-jupyter is not on the PATH. Install it: pip install oh_jupyter")
    return program


def oauth_address(url: str) -> str:
    """Return the MCP address of a hub's service at an address or above it, or "" for none.

    Such a service describes its address (RFC 9728), so that its clients authorize by themselves.
    """
    import httpx

    if "?" in url:  # a Jupyter server's, with its token
        return ""
    base, is_mcp, below = url.rstrip("/").rpartition("/mcp")
    if not is_mcp or (below and not below.startswith("/")):
        base, below = url.rstrip("/"), ""
    document = f"{base}/.well-known/oauth-protected-resource/mcp{below}"
    try:
        response = httpx.get(document, timeout=CHECK_SECONDS, trust_env=not is_local(url))
        content = response.json() if response.is_success else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):
        return ""  # the check of a Jupyter server reports the failure
    resource = content.get("resource") if isinstance(content, dict) else None
    if not isinstance(resource, str) or not resource:
        return ""
    if resource != f"{base}/mcp{below}":
        raise ConfigError(f"{url} says that its address is {resource}; use that one")
    return resource


def _check(server: RunningServer) -> None:
    """Open and close a session as an agent does, or raise ServerError."""
    import httpx

    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": NAME, "version": ""},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accept = {"Accept": "application/json, text/event-stream"}
    address = f"{server.url}/mcp"
    with httpx.Client(
        headers={**server.headers, **accept},
        timeout=CHECK_SECONDS,
        trust_env=not is_local(address),
    ) as client:
        try:
            response = client.post(address, json=message)
            session = response.headers.get("mcp-session-id")
            if session:
                client.delete(address, headers={"mcp-session-id": session})
        except httpx.HTTPError as error:
            raise ServerError(f"{address} cannot be reached: {error}") from error
    if not response.is_success:
        raise ServerError(describe_failure(address, response.status_code, response.content))


def _report(
    client: Client,
    file: Path,
    target: Target,
    server: RunningServer | None,
    before: str,
    after: str,
) -> Iterator[str]:
    """Yield what was done, whether it works, and what to do next."""
    if before == after:
        yield f"{client.title}: {NAME} is in {file} already"
    else:
        backup = f" (backup: {backup_of(file)})" if before else ""
        yield f"{client.title}: wrote {NAME} to {file}{backup}"
        old, new = notebook_of(client.location, before), notebook_of(client.location, after)
        if old and old != new:
            yield f"It replaces the entry for {old}: a client has one notebook at a time"
    if target.oauth_address:
        yield (
            f"{target.oauth_address} answers. The entry needs no token: the client opens the hub's "
            "log-in page in your browser"
        )
        yield f"Next: {client.next_step}; then ask: {QUESTION}"
        return
    if target.server and target.server.token:
        yield (
            "It holds the server's token: keep the file private, and connect again when the server "
            "has been restarted"
        )
    if server and server.notebook:
        yield f"It uses the only open notebook, {server.notebook}; --notebook NAME fixes the choice"
    elif server and "/kernels/" not in server.url:
        yield "It uses a kernel of its own; --notebook NAME selects an open notebook instead"
    yield f"{server.url} answers" if server else NOT_RUNNING
    yield f"Next: {client.next_step}; then ask: {QUESTION}"


def read_text(file: Path) -> str:
    """Return the text of a file, "" if there is none, or raise ConfigError."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"it cannot be read: {error}") from error


def backup_of(file: Path) -> Path:
    """Return the path of a file's backup."""
    return file.with_name(f"{file.name}.before-oh-jupyter")


def write_text(file: Path, text: str, private: bool = False) -> None:
    """Back up and replace a file atomically, or raise ConfigError."""
    target = file.resolve()  # keep a symbolic link, e.g. into dotfiles
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600 if private else 0o644
        if target.exists():
            _replace(backup_of(target), target.read_bytes(), mode)
        _replace(target, text.encode(), mode)
    except OSError as error:
        raise ConfigError(f"it cannot be written: {error}") from error


def _replace(target: Path, data: bytes, mode: int) -> None:
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
