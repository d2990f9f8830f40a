"""The command ``oh-jupyter connect``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from oh_jupyter.connect.clients import CLIENTS, NAME, Client, Connection
from oh_jupyter.connect.entries import notebook_of, remove_entry, set_entry, show_entry
from oh_jupyter.errors import ConfigError, ServerError, ServerNotFoundError
from oh_jupyter.server.running import (
    NOT_RUNNING,
    RunningServer,
    describe_failure,
    find_server,
    is_local,
    server_at,
)

CHECK_SECONDS = 30.0
"""Seconds until the server must have answered an agent's first message."""

RUNTIME_VARIABLES = ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "XDG_DATA_HOME")
"""Where running servers are noted, if not in the usual place; clients do not pass these on."""

QUESTION = "Which variables are there in my notebook?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what ``connect`` takes."""
    parser.add_argument("client", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--notebook", help="an open notebook, for the tools of its own kernel")
    url = "write this address of a Jupyter server, instead of the command that finds the one here"
    parser.add_argument("--url", help=url)
    parser.add_argument("--token", help="the token for --url")
    where = parser.add_mutually_exclusive_group()
    for scope, meaning in (
        ("user", "for all that you do"),
        ("project", "for this directory alone"),
    ):
        where.add_argument(
            f"--{scope}", action="store_const", const=scope, dest="scope", help=meaning
        )
    trust = "let JupyterLab alone ask you, as the setting confirmation says, and not the client too"
    parser.add_argument("--trust", action="store_true", help=trust)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--print", action="store_true", help="print what would be written")
    what.add_argument("--remove", action="store_true", help="take it away again")


def connect(options: argparse.Namespace) -> int:
    """Write, print or remove the entry in a client's file; the exit status."""
    client = CLIENTS.get(options.client)
    if client is None:
        raise ConfigError(f"there is no client {options.client!r}. Known: {', '.join(CLIENTS)}")
    if options.trust and not (client.trust or client.rule):
        raise ConfigError(
            f"{client.title} has no file in which tools are allowed; allow them when it asks"
        )
    scope, file = _file(client, options.scope)
    rule = client.rule[0] if client.rule else None
    rule_file = client.rule_file(scope, Path.cwd())
    if options.remove:
        if rule and rule_file:
            _change(rule_file, lambda text: remove_entry(rule, text))
        before, after = _change(file, lambda text: remove_entry(client.place, text))
        if after == before:
            print(f"{client.title}: there is no {NAME} in {file}")
        else:
            print(f"{client.title}: {NAME} is removed from {file} (before: {backup_of(file)})")
        return 0
    to, found = _connection(options)
    entry = client.entry(to, options.trust)
    if options.print:
        print(f"# {file}", file=sys.stderr)
        print(show_entry(client.place, entry), end="")
        return 0
    decided = client.trust if options.trust else ()
    before, after = _change(
        file,
        lambda text: set_entry(client.place, text, entry, decided),
        private=to.server is not None,
    )
    if options.trust and rule and rule_file:
        _change(rule_file, lambda text: set_entry(rule, text, rule.name))
    print("\n".join(_report(client, file, to, found, before, after)))
    if options.trust:
        print(
            f"{client.title} does not ask before our tools: JupyterLab does, as the setting "
            "confirmation says; where that is never, nobody does"
        )
    return 0


def _change(file: Path, change: Callable[[str], str], *, private: bool = False) -> tuple[str, str]:
    """Change the text of a file; the text before and after. ConfigError if it stays as it was."""
    try:
        before = read_text(file)
        after = change(before)
        if after != before:
            write_text(file, after, private=private)
    except ConfigError as problem:
        raise ConfigError(f"{file} is left as it was: {problem}") from problem
    return before, after


def _file(client: Client, scope: str | None) -> tuple[str, Path]:
    """The scope and the file that are meant."""
    for each in (scope,) if scope else ("user", "project"):
        if file := client.file(each, Path.cwd()):
            return each, file
    other = "--project" if scope == "user" else "--user"
    raise ConfigError(f"{client.title} has no such file for MCP servers; use {other}")


def _connection(options: argparse.Namespace) -> tuple[Connection, RunningServer | None]:
    """What to write, and the server that it leads to now, if one is running."""
    if options.url is not None:
        server = server_at(options.url, options.token or "", options.notebook)
        _check(server)
        return Connection(server=server), server
    if options.token is not None:
        raise ConfigError(
            "--token is the token for --url, and there is none: leave it out, the command finds "
            "the server here with its token; or add --url"
        )
    notebook = () if options.notebook is None else ("--notebook", str(options.notebook))
    known = {name: os.environ[name] for name in RUNTIME_VARIABLES if os.environ.get(name)}
    to = Connection((_program(), "mcp", *notebook), known)
    try:
        found = find_server(options.notebook, prefer_open=True)
    except ServerNotFoundError:
        return to, None
    _check(found)
    return to, found


def _program() -> str:
    """Our own program, by its whole path: clients do not know this environment."""
    beside = Path(sys.executable).with_name("oh-jupyter")
    found = str(beside) if beside.exists() else shutil.which("oh-jupyter")
    if found is None:
        raise ConfigError("the program oh-jupyter is not found. Install it: pip install oh_jupyter")
    return found


def _check(server: RunningServer) -> None:
    """Open a session as an agent does, and close it; ServerError if that does not work."""
    import httpx

    about = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params = {**about, "clientInfo": {"name": NAME, "version": ""}}
    first = {"method": "initialize", "params": params}
    accepted = {"Accept": "application/json, text/event-stream"}
    address = f"{server.url}/mcp"
    with httpx.Client(
        headers={**server.headers, **accepted},
        timeout=CHECK_SECONDS,
        trust_env=not is_local(address),
    ) as client:
        try:
            answer = client.post(address, json={"jsonrpc": "2.0", "id": 1, **first})
            session = answer.headers.get("mcp-session-id")
            if session:
                client.delete(address, headers={"mcp-session-id": session})
        except httpx.HTTPError as problem:
            raise ServerError(f"{address} cannot be reached: {problem}") from problem
    if not answer.is_success:
        raise ServerError(describe_failure(address, answer.status_code, answer.content))


def _report(
    client: Client,
    file: Path,
    to: Connection,
    found: RunningServer | None,
    before: str,
    after: str,
) -> Iterator[str]:
    """What has been done, whether it works, and what to do next."""
    if before == after:
        yield f"{client.title}: {NAME} is in {file} already"
    else:
        backup = f" (before: {backup_of(file)})" if before else ""
        yield f"{client.title}: {NAME} is written to {file}{backup}"
        replaced, named = notebook_of(client.place, before), notebook_of(client.place, after)
        if replaced and replaced != named:
            yield f"It replaces the entry for {replaced}: a client has one notebook at a time"
    if to.server and to.server.token:
        yield (
            "It holds the server's token: keep the file to yourself, and connect again if the "
            "server is started anew"
        )
    if found and found.notebook:
        yield (
            f"It works in {found.notebook}, the only open notebook; --notebook NAME keeps it to one"
        )
    elif found and "/kernels/" not in found.url:
        yield "It works in a kernel of its own; --notebook NAME names an open notebook instead"
    yield f"{found.url} answers" if found else NOT_RUNNING
    yield f"Next: {client.next_step}; then ask: {QUESTION}"


def read_text(file: Path) -> str:
    """The text of a file, "" if there is none; ConfigError if it cannot be read."""
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"it cannot be read: {problem}") from problem


def backup_of(file: Path) -> Path:
    """Where a file goes before it is changed."""
    return file.with_name(f"{file.name}.before-oh-jupyter")


def write_text(file: Path, text: str, private: bool = False) -> None:
    """Write a file whole or not at all, after what it held was copied beside it; or ConfigError."""
    target = file.resolve()  # a link into somebody's dotfiles stays one
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600 if private else 0o644
        if target.exists():
            _replace(backup_of(target), target.read_bytes(), mode)
        _replace(target, text.encode(), mode)
    except OSError as problem:
        raise ConfigError(f"it cannot be written: {problem}") from problem


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
