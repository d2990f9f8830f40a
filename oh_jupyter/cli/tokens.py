"""The command ``token``, for agents with limited access."""

from __future__ import annotations

import argparse
from typing import Any

from oh_jupyter.errors import ConfigError


def add_token(commands: Any) -> None:
    """Add the command to a parser."""
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
    token.set_defaults(run=_token)


def _add_scopes(parser: argparse.ArgumentParser) -> None:
    from oh_jupyter.events.actor import SCOPES

    for scope, meaning in SCOPES.items():
        parser.add_argument(
            f"--{scope}", action="append_const", const=scope, dest="scopes", help=meaning
        )


def _seconds(text: str) -> float:
    """Parse a time such as 8h; argparse words the ValueError for anything else."""
    units = {"m": 60.0, "h": 3600.0, "d": 86400.0}
    if not text[:-1].isdecimal() or text[-1] not in units or not int(text[:-1]):
        raise ValueError
    return int(text[:-1]) * units[text[-1]]


_seconds.__name__ = "time"  # argparse's messages use it


def _token(options: argparse.Namespace) -> int:
    from oh_jupyter.server.tokens import ScopedTokens

    tokens = ScopedTokens()
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
