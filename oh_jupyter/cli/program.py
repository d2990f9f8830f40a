"""The program: its commands, exit status and errors."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from oh_jupyter._version import __version__
from oh_jupyter.cli.evaluate import add_evaluate
from oh_jupyter.cli.hub import add_hub
from oh_jupyter.cli.kernel import add_kernel_commands
from oh_jupyter.cli.relay import add_mcp
from oh_jupyter.cli.sandbox import add_sandbox
from oh_jupyter.cli.setup import add_setup
from oh_jupyter.cli.state import add_state
from oh_jupyter.cli.tokens import add_token
from oh_jupyter.cli.trust import add_trust
from oh_jupyter.connect.command import add_connect
from oh_jupyter.errors import OhJupyterError

INTERRUPTED_EXIT_CODE = 130
"""Exit status of a program that Ctrl-C has ended."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status.

    Args:
        arguments: The arguments, by default those of the process.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = make_parser(words[:1]).parse_args(words)
    try:
        status: int = options.run(options)
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


def make_parser(command: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return a parser of all commands, with the slow options of ``evaluate`` only if it is one."""
    parser = argparse.ArgumentParser(
        prog="oh-jupyter", description="Set up oh_jupyter, and find its server."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    add_setup(commands)
    add_mcp(commands)
    add_connect(commands)
    add_token(commands)
    add_sandbox(commands)
    add_trust(commands)
    add_state(commands)
    add_hub(commands)
    add_evaluate(commands, has_options="evaluate" in command)
    add_kernel_commands(commands)
    return parser
