"""Commands that show and control kernels: ``status``, ``log``, ``confirm`` and ``open``."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from oh_jupyter.background import thread_pool
from oh_jupyter.cli.address import add_address, find
from oh_jupyter.errors import ConfirmationError, OhJupyterError, ServerError
from oh_jupyter.text import first_line, visible

if TYPE_CHECKING:
    from oh_jupyter.client import RuntimeClient
    from oh_jupyter.events import Event
    from oh_jupyter.server.running import RunningServer


MAX_THREADS = 16
READ_SECONDS = 30.0  # timeout for a kernel's list


@dataclass(frozen=True)
class KernelQuestions:
    """The waiting actions of one kernel.

    Attributes:
        place: Path of its notebook, or its id; "" for the kernel that the command names.
        option: Option of a command that names the kernel.
        waiting: The actions, as the server lists them.
        failure: Why the kernel has no list.
    """

    place: str
    option: str
    waiting: list[dict[str, Any]]
    failure: str = ""


def questions_elsewhere(options: argparse.Namespace) -> list[KernelQuestions]:
    """Return what waits in the other kernels of the server, if the options name no kernel."""
    server = find(options, options.notebook)
    base, _, below = server.url.partition("/oh_jupyter")
    if below:
        return []
    places = _places(base, server)
    if not places:
        return []
    with thread_pool(min(len(places), MAX_THREADS), "oh-waiting") as threads:
        kernels = list(threads.map(lambda place: _ask(base, server, *place), places))
    return [kernel for kernel in kernels if kernel.waiting or kernel.failure]


def _places(base: str, server: RunningServer) -> list[tuple[str, str, str]]:
    """Return id, name and option of each kernel except the default one."""
    notebooks = _get(server, f"{base}/oh_jupyter/notebooks")
    paths = {str(each["kernel_id"]): str(each["path"]) for each in notebooks}
    try:
        ids = [str(each["id"]) for each in _get(server, f"{base}/api/kernels")]
    except ServerError:  # a token may allow the notebooks only
        ids = list(paths)
    own = _get(server, f"{base}/oh_jupyter/server_info")["default_kernel"]
    return [
        (id, paths[id], f"--notebook {shlex.quote(paths[id])}")
        if id in paths
        else (id, f"kernel {id}", f"--url {base}/oh_jupyter/kernels/{id}")
        for id in ids
        if id != own
    ]


def _ask(base: str, server: RunningServer, id: str, name: str, option: str) -> KernelQuestions:
    try:
        waiting = _get(server, f"{base}/oh_jupyter/kernels/{id}/confirmations")
    except OhJupyterError as error:
        return KernelQuestions(name, option, [], str(error))
    return KernelQuestions(name, option, waiting)


def _get(server: RunningServer, address: str) -> Any:
    """Return the JSON at an address of a server, or raise ServerError."""
    import httpx

    from oh_jupyter.loopback import is_local
    from oh_jupyter.server.running import describe_failure

    try:
        response = httpx.get(
            address,
            headers=server.headers,
            timeout=READ_SECONDS,
            trust_env=not is_local(address),
        )
    except httpx.HTTPError as error:
        raise ServerError(f"{address} does not answer: {error!r}") from error
    if not response.is_success:
        failure = describe_failure(address, response.status_code, response.content)
        raise ServerError(failure, response.status_code)
    return response.json()


def add_kernel_commands(commands: Any) -> None:
    """Add the commands to a parser."""
    descriptions: dict[str, tuple[Callable[[argparse.Namespace], int], str]] = {
        "status": (_status, "show where a kernel works, and what waits for a person"),
        "log": (_log, "show what was done in a kernel"),
        "confirm": (_confirm, "decide on an action that waits for a person"),
        "open": (_open, "open JupyterLab in the browser"),
    }
    parsers = {}
    for name, (run, text) in descriptions.items():
        parsers[name] = commands.add_parser(name, help=text, description=f"{text.capitalize()}.")
        parsers[name].add_argument("--notebook", help="an open notebook (default: the own kernel)")
        parsers[name].set_defaults(run=run)
        add_address(parsers[name])
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


def _count(text: str) -> int:
    """Parse a number from 0 on; argparse words the ValueError for anything else."""
    if not text.isdecimal():
        raise ValueError
    return int(text)


_count.__name__ = "number"  # argparse's messages use it


def _status(options: argparse.Namespace) -> int:
    with _client(options) as client:
        info = client.server_info()
        waiting = client.waiting()
    elsewhere = questions_elsewhere(options)
    runtime = info.get("runtime") or {}
    shown = {"server": info.get("version"), "kernel": info.get("default_kernel"), **runtime}
    for name, value in shown.items():
        if value is not None and not isinstance(value, dict | list):
            print(f"{name:16} {round(value, 1) if isinstance(value, float) else value}")
    if not runtime:
        which = f"of {options.notebook}" if options.notebook else "that is asked without --notebook"
        print(f"Nothing has been done in the kernel {which} yet, or it is too busy to answer.")
    for message in runtime.get("running", ()):
        print(f"running: {_in_place(message)}")
    for entry in waiting:
        print(f"waits: {entry['id']}  {_question(entry)}")
    for kernel in elsewhere:
        for entry in kernel.waiting:
            print(f"waits in {kernel.place}: {entry['id']}  {_question(entry)}")
        if kernel.failure:
            print(f"unknown in {kernel.place}: {kernel.failure}")
    return 0


def _question(entry: dict[str, Any]) -> str:
    from oh_jupyter.events.question import question_terms

    agent = f"{entry['agent']}: " if entry["agent"] else ""
    terms = question_terms(entry["sandboxed"], entry["seconds_left"])
    return f"{agent}{_in_place(entry['message'])}  ({entry['reason']}; {terms})"


def _in_place(message: str) -> str:
    """Return an agent's text that can look like no other line, nor move the cursor."""
    return visible(message).replace("\n", "\n       | ")


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
    from oh_jupyter.events import Action
    from oh_jupyter.events.title import title

    what = title(event) if isinstance(event, Action) else first_line(event.message)
    return f"{event.id:5}  {event.source or '':11}  {event.kind:16}  {visible(what)}"


def _confirm(options: argparse.Namespace) -> int:
    with _client(options) as client:
        waiting = client.waiting()
        if options.id is None:
            for entry in waiting:
                print(f"{entry['id']:5}  {_question(entry)}")
                print(textwrap.indent(entry["diff"], " " * 7), end="")
            elsewhere = questions_elsewhere(options)
            for kernel in elsewhere:
                _list_elsewhere(kernel)
            if not waiting and not elsewhere:
                print("Nothing waits.")
            return 0
        if options.id not in (ids := [entry["id"] for entry in waiting]):
            names = ", ".join(map(str, ids)) or "none"
            raise ConfirmationError(
                f"No action {options.id} waits. Waiting: {names}{_hint(options)}"
            )
        client.confirm(
            options.id,
            approve=not options.reject,
            for_session=options.session,
            for_workspace=options.always,
        )
        print("Rejected." if options.reject else "Approved.")
    return 0


def _list_elsewhere(kernel: KernelQuestions) -> None:
    if kernel.failure:
        print(f"{kernel.place} does not say what waits there: {kernel.failure}")
        return
    print(f"In {kernel.place}; decide with: oh-jupyter confirm {kernel.option} ID")
    for entry in kernel.waiting:
        print(f"{entry['id']:5}  {_question(entry)}")
        print(textwrap.indent(entry["diff"], " " * 7), end="")


def _hint(options: argparse.Namespace) -> str:
    """Return the commands for the action of this id in other kernels; ids repeat in each."""
    commands = [
        f"oh-jupyter confirm {kernel.option} {options.id}"
        for kernel in questions_elsewhere(options)
        if any(entry["id"] == options.id for entry in kernel.waiting)
    ]
    return f". In another kernel: {'; '.join(commands)}" if commands else ""


def _open(options: argparse.Namespace) -> int:
    import webbrowser

    server = find(options, None)
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
    """Raise ServerError if a notebook is not there, or the server does not answer."""
    import httpx

    from oh_jupyter.loopback import is_local

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

    server = find(options, options.notebook)
    return RuntimeClient(server.url, server.token)
