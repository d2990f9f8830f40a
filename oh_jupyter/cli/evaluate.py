"""The command ``evaluate``."""

from __future__ import annotations

import argparse
import os
from typing import Any


def add_evaluate(commands: Any, *, has_options: bool) -> None:
    """Add the command to a parser, with its options only if they are needed."""
    parser = commands.add_parser(
        "evaluate",
        help="run an agent on tasks: MiniWoB, repositories, stateful work, Inspect, Harbor",
        description="Run an agent on tasks, print the results, and with --out continue an "
        "earlier run. evaluate show FILE.jsonl [TASK SEED] prints the results of a run.",
    )
    parser.set_defaults(run=_evaluate)
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
