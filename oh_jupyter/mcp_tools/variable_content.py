"""Arguments that name a variable of the notebook instead of a content."""

from __future__ import annotations

import re
from typing import Any

from oh_jupyter.control_messages import VARIABLE_PREFIX
from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.operations.kernel import VariableText

_REFERENCE = re.compile(rf"{VARIABLE_PREFIX}([^\W\d]\w*)")
_QUOTED_REFERENCE = re.compile(rf"(['\"]){VARIABLE_PREFIX}([^\W\d]\w*)\1")
HINT = f"or {VARIABLE_PREFIX}NAME"
"""Mention in the descriptions of such arguments."""


async def with_content(kernel: Kernel, arguments: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return arguments in which a text or bytes of a variable replaces its name.

    The content does not pass the model. Raises InspectionError for other variables.
    """
    contents = {}
    for name in names:
        value = arguments.get(name)
        match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            contents[name] = await _text_of(kernel, match[1])
    return {**arguments, **contents}


async def with_literals(kernel: Kernel, code: str) -> str:
    """Return code in which the text of a variable, as a literal, replaces each quoted reference."""
    texts = {
        name: repr(await _text_of(kernel, name))
        for name in {match[2] for match in _QUOTED_REFERENCE.finditer(code)}
    }
    return _QUOTED_REFERENCE.sub(lambda match: texts[match[2]], code)


async def _text_of(kernel: Kernel, name: str) -> str:
    """Return the text of a variable of the notebook."""
    reply = await kernel.request(VariableText(name))
    return (reply.body or b"").decode()
