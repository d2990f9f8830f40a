"""The environments of stateful tasks: MCP servers in the task's folder, and generated tables."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from oh_jupyter.errors import EvaluationError
from oh_jupyter.installed import find_program, python_command, python_script

if TYPE_CHECKING:
    from oh_jupyter.runtime.mcp import McpServer


Row = dict[str, Any]
FIRST_DAY = date(2025, 1, 1)


def _day(random: Random, days: int = 365) -> str:
    return (FIRST_DAY + timedelta(random.randrange(days))).isoformat()


def _orders(random: Random) -> list[Row]:
    rows = [
        {
            "order_id": number,
            "day": _day(random),
            "region": random.choice(["north", "south", "east", "west"]),
            "product": random.choice(["lamp", "desk", "chair", "shelf", "rug"]),
            "quantity": random.randint(1, 9),
            "price": round(random.uniform(5, 200), 2) if random.random() > 0.06 else "",
        }
        for number in range(1, 601)
    ]
    return rows + random.sample(rows, 15)


def _sensors(random: Random) -> list[Row]:
    rows = []
    for hour in range(24 * 30):
        for sensor in ("a", "b", "c"):
            value = 20 + 5 * (hour % 24 > 11) + random.gauss(0, 1)
            if random.random() < 0.01:
                value += 60
            reading = "" if random.random() < 0.03 else round(value, 3)
            rows.append({"hour": hour, "sensor": sensor, "reading": reading})
    return rows


def _patients(random: Random) -> list[Row]:
    return [
        {
            "patient": number,
            "age": random.randint(18, 90),
            "group": random.choice(["treated", "control"]),
            "before": round(random.gauss(140, 12), 1),
            "after": round(random.gauss(132, 14), 1) if random.random() > 0.08 else "",
            "site": random.choice(["A", "B", "C"]),
        }
        for number in range(1, 401)
    ]


def _staff(random: Random) -> list[Row]:
    return [
        {
            "name": f"person{number:03}",
            "team": random.choice(["sales", "support", "research", "legal"]),
            "salary": round(random.uniform(30_000, 120_000), -2),
            "hired": _day(random),
            "hours": random.choice([20, 30, 40]),
        }
        for number in range(1, 251)
    ]


def _flights(random: Random) -> list[Row]:
    return [
        {
            "flight": f"{random.choice(['XA', 'YB', 'ZC'])}{number}",
            "day": _day(random, 90),
            "origin": random.choice(["OSL", "CDG", "JFK", "NRT"]),
            "delay": round(random.gauss(12, 25)) if random.random() > 0.05 else "",
            "seats": random.choice([120, 180, 240]),
            "sold": random.randint(40, 120),
        }
        for number in range(1, 501)
    ]


def _prices(random: Random) -> list[Row]:
    level = {"ore": 50.0, "oil": 80.0, "tin": 20.0}
    rows = []
    for number in range(260):
        for ticker in level:
            level[ticker] *= 1 + random.gauss(0.0003, 0.015)
            day = (FIRST_DAY + timedelta(number)).isoformat()
            rows.append({"day": day, "ticker": ticker, "close": round(level[ticker], 4)})
    return rows


TABLES: dict[str, Callable[[Random], list[Row]]] = {
    "orders": _orders,
    "sensors": _sensors,
    "patients": _patients,
    "staff": _staff,
    "flights": _flights,
    "prices": _prices,
}


def write_table(name: str, seed: int, folder: Path) -> None:
    """Write a table as ``NAME.csv``; the same seed gives the same bytes."""
    rows = TABLES[name](Random(f"{name} {seed}"))
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


PLAIN_SERVER = "jupyter-mcp-server"
TOKEN = "evaluation"


@dataclass(frozen=True)
class Environment:
    """An environment that runs.

    Attributes:
        name: Its name.
        server: The MCP server with its tools.
        hint: Description of the tools, before the agent's first prompt.
    """

    name: str
    server: McpServer
    hint: str


@contextmanager
def open_environment(name: str, workspace: Path, folder: Path) -> Iterator[Environment]:
    """Start an environment whose tools work in a workspace; its other files are in a folder."""
    with ENVIRONMENTS[name](workspace, folder) as environment:
        yield environment


@contextmanager
def _bash(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    python, *arguments = python_command(
        "oh_jupyter.evaluation.stateful.bash_server", str(workspace)
    )
    hint = "The tool bash runs a command in a new shell, in the folder of the files."
    yield Environment("bash", McpServer("bash", python, tuple(arguments), _search_path()), hint)


@contextmanager
def _jupyter(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    program = find_program(PLAIN_SERVER)
    if program is None:
        raise EvaluationError(
            f"The tasks stateful/jupyter/* need the program {PLAIN_SERVER} on the PATH: pipx "
            f"install {PLAIN_SERVER} (with pip, it changes the JupyterLab beside it)"
        )
    with _jupyter_server(workspace, folder, has_extension=False) as url:
        arguments = (
            "start", "--transport", "stdio", "--code-sandbox-url", url, "--document-url", url,
        )  # fmt: skip
        tokens = {"CODE_SANDBOX_TOKEN": TOKEN, "DOCUMENT_TOKEN": TOKEN}
        hint = "The tool execute_code runs a cell in the notebook's kernel, which keeps variables."
        yield Environment("jupyter", McpServer("jupyter", program, arguments, tokens), hint)


@contextmanager
def _oh_jupyter(workspace: Path, folder: Path) -> Iterator[Environment]:
    from oh_jupyter.runtime.mcp import McpServer

    with _jupyter_server(workspace, folder, has_extension=True) as url:
        python, *arguments = python_script(
            "from oh_jupyter.cli import main; raise SystemExit(main())", "mcp"
        )
        variables = _search_path() | {"OH_URL": url, "OH_TOKEN": TOKEN}
        hint = (
            "The tool run_ipython runs a cell in the notebook's kernel, which keeps variables. "
            "The tool changes, with command checkpoint, begins a turn before a step that you may "
            "have to undo; with command rewind and the turn's id, it restores variables and files."
        )
        server = McpServer("oh_jupyter", python, tuple(arguments), variables)
        yield Environment("oh_jupyter", server, hint)


ENVIRONMENTS: dict[str, Callable[[Path, Path], AbstractContextManager[Environment]]] = {
    "bash": _bash,
    "jupyter": _jupyter,
    "oh_jupyter": _oh_jupyter,
}


def _search_path() -> dict[str, str]:
    """Return variables with which ``python`` and this package are found."""
    root = str(Path(__file__).resolve().parents[3])
    return {
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
    }


@contextmanager
def _jupyter_server(workspace: Path, folder: Path, *, has_extension: bool) -> Iterator[str]:
    """Run a Jupyter server with its root in the workspace, and yield its address."""
    from oh_jupyter.client.started_server import StartedServer

    variables = {"FILE_STORE_PATH": str(folder / "store"), "OH_JUPYTER_CONFIRMATION": "never"}
    server = StartedServer(
        str(workspace),
        TOKEN,
        has_extension=has_extension,
        environment=_search_path() | variables,
    )
    try:
        yield server.url
    finally:
        server.close()
