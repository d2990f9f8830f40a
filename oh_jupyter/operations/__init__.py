"""Operations: what frontends, agents and servers ask of a runtime besides Actions."""

from oh_jupyter.operations.declaration import (
    ENVELOPE,
    Operation,
    Scope,
    arguments,
    bounded,
    from_json,
    optional,
    reply_to,
    to_json,
)

__all__ = [
    "ENVELOPE",
    "Operation",
    "Scope",
    "arguments",
    "bounded",
    "from_json",
    "optional",
    "reply_to",
    "to_json",
]
