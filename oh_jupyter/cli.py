"""``oh-jupyter``: what is done from a terminal."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from oh_jupyter._version import __version__
from oh_jupyter.errors import ConfigError, ConfirmationError, OhJupyterError, ServerError

if TYPE_CHECKING:
    from oh_jupyter.client import RuntimeClient
    from oh_jupyter.events import Event
    from oh_jupyter.server.running import RunningServer

INTERRUPTED_EXIT_CODE = 130
"""Exit status of a program that Ctrl-C has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; its exit status."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(words[:1]).parse_args(words)
    try:
        status = _run(options)
        sys.stdout.flush()
        return status
    except OhJupyterError as error:
        print(f"oh-jupyter: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(options: argparse.Namespace) -> int:
    if options.command == "mcp":
        return _relay_mcp(options)
    if options.command == "connect":
        from oh_jupyter.connect.command import connect

        return connect(options)
    if options.command == "evaluate":
        return _evaluate(options)
    if options.command == "token":
        return _token(options)
    if options.command == "sandbox":
        return _install_sandbox(options)
    if options.command == "hub":
        return _serve_hub(options)
    if options.command == "doctor":
        return _examine(as_json=options.json)
    if options.command in _OF_A_SERVER:
        return _OF_A_SERVER[options.command](options)
    return _print_environment(options.notebook) if options.command == "env" else _install()


def _parser(command: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The options of all commands; those of ``evaluate``, which are slow to load, if it is one."""
    parser = argparse.ArgumentParser(
        prog="oh-jupyter", description="Set up oh_jupyter, and find its server."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser(
        "install-browser",
        help="find a Chromium, Chrome or Edge, or install Chromium",
        description="Use a browser that is installed; else download Playwright's Chromium; else "
        "install the system's package (root only); else say which one to install.",
    )
    environment = commands.add_parser(
        "env",
        help="print OH_URL and OH_TOKEN of the running server",
        description='Print shell assignments for the server that is running: eval "$(oh-jupyter '
        'env)"',
    )
    environment.add_argument("--notebook", help="an open notebook, for its own kernel's address")
    relay = commands.add_parser(
        "mcp",
        help="offer the running server's MCP tools on standard input and output",
        description="For MCP clients that start a program: relays to the server that is running "
        "here, or to the one at --url.",
    )
    relay.add_argument("--notebook", help="an open notebook, for the tools of its own kernel")
    _add_address(relay)
    _add_connect(commands)
    _add_token(commands)
    _add_sandbox(commands)
    _add_hub(commands)
    _add_evaluate(commands, has_options="evaluate" in command)
    doctor = commands.add_parser(
        "doctor",
        help="tell what does not work here, and the command that mends it",
        description="Look at packages, kernel, extensions, browser, agents, store and directories. "
        "The exit status is 1 if something is wrong.",
    )
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")
    _add_watching(commands)
    return parser


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        default=os.environ.get("OH_URL"),
        help="address of a Jupyter server, or of oh_jupyter in it (default: $OH_URL, else the "
        "server that is running here)",
    )
    parser.add_argument(
        "--token", default=os.environ.get("OH_TOKEN"), help="its token (default: $OH_TOKEN)"
    )


def _count(text: str) -> int:
    """A number from 0 on; a ValueError, which argparse words, for anything else."""
    if not text.isdecimal():
        raise ValueError
    return int(text)


_count.__name__ = "number"  # what argparse calls it


def _add_watching(commands: Any) -> None:
    """The commands for people who look at a running kernel from a terminal."""
    help_texts = {
        "status": "show where a kernel works, and what waits for a person",
        "log": "show what was done in a kernel",
        "confirm": "decide on an action that waits for a person",
        "open": "open JupyterLab in the browser",
    }
    parsers = {}
    for name, text in help_texts.items():
        parsers[name] = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
        parsers[name].add_argument("--notebook", help="an open notebook (default: the own kernel)")
        _add_address(parsers[name])
    log = parsers["log"]
    log.add_argument("-n", "--last", type=_count, default=20, metavar="N", help="how many")
    log.add_argument("-f", "--follow", action="store_true", help="keep printing new actions")
    parsers["confirm"].add_argument(
        "id", nargs="?", type=_count, help="its id; the list when left out"
    )
    decision = parsers["confirm"].add_mutually_exclusive_group()
    for option, text in (
        (("-r", "--reject"), "reject it"),
        (
            ("-s", "--session"),
            "also approve later actions of its type for the same reasons",
        ),
        (("--always",), "the same, in this workspace from now on"),
    ):
        decision.add_argument(*option, action="store_true", help=text)


def _add_connect(commands: Any) -> None:
    from oh_jupyter.connect.command import add_arguments

    add_arguments(
        commands.add_parser(
            "connect",
            help="let an agent's client use the notebook: claude, codex, gemini, ...",
            description="Write our MCP server into the configuration file of an agent's client.",
        )
    )


def _add_evaluate(commands: Any, *, has_options: bool) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="run an agent on tasks: MiniWoB, repositories, stateful work, Inspect, Harbor",
        description="Run an agent on tasks, print the results, and with --out continue an "
        "earlier run. evaluate show FILE.jsonl [TASK SEED] prints the results of a run.",
    )
    if has_options:
        from oh_jupyter.evaluation.command import add_arguments

        add_arguments(parser)


def _evaluate(options: argparse.Namespace) -> int:
    from oh_jupyter.evaluation.command import evaluate, needs_server
    from oh_jupyter.server.running import find_server

    if needs_server(options.tasks) and "OH_URL" not in os.environ:
        server = find_server()
        os.environ |= {"OH_URL": server.url, "OH_TOKEN": server.token}
    return evaluate(options)


def _add_token(commands: Any) -> None:
    token = commands.add_parser(
        "token",
        help="make a token that allows an agent only some things, or revoke one",
        description="Print a token for REST and MCP on this user's servers that allows only what "
        "is named. Without options, list the tokens.",
    )
    _add_scopes(token)
    token.add_argument("--notebook", default="", help="allow only this notebook and its kernel")
    token.add_argument(
        "--expires", type=_seconds, metavar="TIME", help="when it ends, such as 30m, 8h or 7d"
    )
    token.add_argument("--label", default="", help="a name for the list and the event log")
    token.add_argument("--revoke", metavar="ID", help="revoke the token with this id")


def _add_sandbox(commands: Any) -> None:
    sandbox = commands.add_parser(
        "sandbox",
        help='install the kernel "Python 3 (sandboxed)"',
        description="Install a kernelspec whose kernels run in a sandbox as a whole.",
    )
    sandbox.add_argument("action", choices=["install"])
    sandbox.add_argument(
        "--network",
        choices=["none", "listed", "host"],
        help="network of the kernels: none, listed hosts, or the machine's (default: none, or "
        "listed with --host)",
    )
    sandbox.add_argument(
        "--host",
        action="append",
        default=[],
        dest="hosts",
        metavar="HOST",
        help="a host that they may reach, or a preset such as pypi; can be repeated",
    )
    sandbox.add_argument(
        "--sys-prefix", action="store_true", help="install into this environment, not for the user"
    )


def _add_hub(commands: Any) -> None:
    hub = commands.add_parser(
        "hub",
        help="serve one MCP address for the users of a JupyterHub",
        description="A service that JupyterHub starts, see docs/how-to/jupyterhub.md. MCP clients "
        "authorize at the hub, and work on the server of their user.",
    )
    hub.add_argument(
        "--database",
        type=Path,
        default=Path("oh-jupyter-hub.sqlite"),
        metavar="FILE",
        help="where tokens are stored, encrypted (default: oh-jupyter-hub.sqlite)",
    )
    hub.add_argument(
        "--public-url",
        metavar="URL",
        help="address of the hub in people's browsers (default: c.JupyterHub.public_url)",
    )
    hub.add_argument(
        "--servers-url",
        metavar="URL",
        help="address of the hub's proxy for this service, where it differs from the public one",
    )
    hub.add_argument(
        "--no-client-documents",
        action="store_true",
        help="do not fetch documents that describe clients: they register instead",
    )


def _serve_hub(options: argparse.Namespace) -> int:
    from oh_jupyter.hub.service import run
    from oh_jupyter.hub.settings import hub_settings

    settings = hub_settings(
        os.environ,
        public_url=options.public_url,
        servers_url=options.servers_url,
        database=options.database,
        has_client_documents=not options.no_client_documents,
    )
    return run(settings)


def _install_sandbox(options: argparse.Namespace) -> int:
    from oh_jupyter.boxed_kernel import DISPLAY_NAME, install_kernelspec, used_kernelspec
    from oh_jupyter.sandbox import find_engine

    network = options.network or ("listed" if options.hosts else "none")
    if options.hosts and network != "listed":
        print(f"--host has no effect with --network {network}; leave one of them out.")
        return 2
    prefix = sys.prefix if options.sys_prefix else None
    folder = install_kernelspec(network=network, hosts=options.hosts, prefix=prefix)
    print(f"Installed {DISPLAY_NAME} in {folder}")
    if (used := used_kernelspec()) != folder:
        print(f"Jupyter uses the older kernelspec in {used}; remove that one.")
        return 1
    engine = find_engine(None)
    if engine.program is None:
        print(f"Its kernels do not start yet: {engine.sentence}")
        return 1
    return 0


def _add_scopes(parser: argparse.ArgumentParser) -> None:
    from oh_jupyter.events.scopes import SCOPES

    for scope, meaning in SCOPES.items():
        parser.add_argument(
            f"--{scope}", action="append_const", const=scope, dest="scopes", help=meaning
        )


def _seconds(text: str) -> float:
    """A time such as 8h in seconds; a ValueError, which argparse words, for anything else."""
    units = {"m": 60.0, "h": 3600.0, "d": 86400.0}
    if not text[:-1].isdecimal() or text[-1] not in units or not int(text[:-1]):
        raise ValueError
    return int(text[:-1]) * units[text[-1]]


_seconds.__name__ = "time"


def _token(options: argparse.Namespace) -> int:
    from oh_jupyter.server.tokens import TokenFile

    tokens = TokenFile()
    if options.revoke is not None:
        tokens.revoke(options.revoke)
        print(f"Revoked {options.revoke}.")
    elif options.scopes:
        _, secret = tokens.create(
            options.scopes,
            notebook=options.notebook,
            expires_seconds=options.expires,
            label=options.label,
        )
        print(secret)
    else:
        if options.notebook or options.expires or options.label:
            raise ConfigError("name what the token allows, such as --read --edit")
        print("\n".join(map(str, tokens.list())) or "There are no tokens.")
    return 0


def _find(options: argparse.Namespace, notebook: str | None) -> RunningServer:
    """The server or kernel that the options name; an OhJupyterError if there is none."""
    from oh_jupyter.server.running import find_server, server_at
    from oh_jupyter.server.tokens import PREFIX

    if options.url is None:
        server = find_server(notebook, prefer_open=options.command == "mcp")
        is_scoped = (options.token or "").startswith(PREFIX)
        return replace(server, token=options.token) if is_scoped else server
    return server_at(options.url, options.token or "", notebook)


def _relay_mcp(options: argparse.Namespace) -> int:
    from oh_jupyter.server.mcp.launcher import run

    return run(lambda: _find(options, options.notebook))


def _install() -> int:
    from oh_jupyter.browser.install import install_browser

    return install_browser()


def _print_environment(notebook: str | None) -> int:
    from oh_jupyter.server.running import find_server

    server = find_server(notebook)
    print(f"export OH_URL={shlex.quote(server.url)} OH_TOKEN={shlex.quote(server.token)}")
    return 0


def _examine(*, as_json: bool) -> int:
    """Print the checks of ``doctor``, and whether a server is running."""
    from oh_jupyter.config import read_settings
    from oh_jupyter.doctor import Check, examine
    from oh_jupyter.errors import ServerNotFoundError
    from oh_jupyter.server.running import find_server

    checks = examine(*read_settings())
    try:
        checks.append(Check("running server", "ok", find_server().url))
    except ServerNotFoundError as error:
        checks.append(Check("running server", "missing", str(error)))
    except OhJupyterError as error:
        checks.append(Check("running server", "wrong", str(error)))
    if as_json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        print("\n".join(map(str, checks)))
    return int(any(check.status == "wrong" for check in checks))


def _status(options: argparse.Namespace) -> int:
    with _client(options) as client:
        info = client.server_info()
        waiting = client.waiting()
    runtime = info.get("runtime") or {}
    shown = {"server": info.get("version"), "kernel": info.get("default_kernel"), **runtime}
    for name, value in shown.items():
        if value is not None and not isinstance(value, dict | list):
            print(f"{name:16} {round(value, 1) if isinstance(value, float) else value}")
    if not runtime:
        which = f"of {options.notebook}" if options.notebook else "that is asked without --notebook"
        print(f"Nothing has been done in the kernel {which} yet, or it is too busy to answer.")
    for message in runtime.get("running", ()):
        print(f"running: {message}")
    for entry in waiting:
        print(f"waits: {entry['id']}  {_question(entry)}")
    return 0


def _question(entry: dict[str, Any]) -> str:
    agent = f"{entry['agent']}: " if entry["agent"] else ""
    from oh_jupyter.events.question import question_terms

    terms = question_terms(entry["sandboxed"], entry["seconds_left"])
    return f"{agent}{entry['message']}  ({entry['reason']}; {terms})"


def _log(options: argparse.Namespace) -> int:
    with _client(options) as client:
        events = client.history()
        while len(events) and len(page := client.history((events[-1].id or 0) + 1)):
            events += page
        for event in events[-options.last :] if options.last > 0 else []:
            print(_line(event), flush=True)
        if options.follow:
            start = (events[-1].id or 0) + 1 if events else 0
            with contextlib.suppress(KeyboardInterrupt):
                for event in client.events(start):
                    print(_line(event), flush=True)
    return 0


def _line(event: Event) -> str:
    first = event.message.strip().partition("\n")[0]
    return f"{event.id:5}  {event.source or '':11}  {event.kind:16}  {first}"


def _confirm(options: argparse.Namespace) -> int:
    with _client(options) as client:
        waiting = client.waiting()
        if options.id is None:
            for entry in waiting:
                print(f"{entry['id']:5}  {_question(entry)}")
                print(textwrap.indent(entry["diff"], " " * 7), end="")
            if not waiting:
                print("Nothing waits.")
            return 0
        if options.id not in (ids := [entry["id"] for entry in waiting]):
            names = ", ".join(map(str, ids)) or "none"
            raise ConfirmationError(f"No action {options.id} waits. Waiting: {names}")
        client.confirm(
            options.id,
            approve=not options.reject,
            for_session=options.session,
            for_workspace=options.always,
        )
        print("Rejected." if options.reject else "Approved.")
    return 0


def _open(options: argparse.Namespace) -> int:
    import webbrowser

    server = _find(options, None)
    base = server.url.partition("/oh_jupyter")[0]
    below = f"lab/tree/{quote(options.notebook)}" if options.notebook else "lab"
    _require(server, base, options.notebook or "")
    address = f"{base}/{below}"
    secret = f"?token={server.token}" if server.token else ""
    if not webbrowser.open(address + secret):
        print(f"No browser can be started here. Open {address}{secret}")
    else:
        print(f"Opened {address}")
    return 0


def _require(server: RunningServer, base: str, notebook: str) -> None:
    """A ServerError if a notebook is not there, or the server does not answer."""
    import httpx

    from oh_jupyter.server.running import is_local

    address = f"{base}/api/contents/{quote(notebook)}?content=0"
    try:
        answer = httpx.get(address, headers=server.headers, trust_env=not is_local(address))
    except httpx.HTTPError as error:
        raise ServerError(f"{address} cannot be reached: {error}") from error
    if notebook and answer.status_code == 404:
        raise ServerError(
            f"There is no {notebook} below the root of {base}. Name it as the file browser of "
            "JupyterLab does, with its folders"
        )
    if not answer.is_success:
        raise ServerError(f"{address} answers {answer.status_code} {answer.reason_phrase}")


def _client(options: argparse.Namespace) -> RuntimeClient:
    from oh_jupyter.client import RuntimeClient

    server = _find(options, options.notebook)
    return RuntimeClient(server.url, server.token)


_OF_A_SERVER: dict[str, Callable[[argparse.Namespace], int]] = {
    "status": _status,
    "log": _log,
    "confirm": _confirm,
    "open": _open,
}
