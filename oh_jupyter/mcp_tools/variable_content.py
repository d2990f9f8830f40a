"""Arguments that name a variable of the notebook instead of a content."""

from __future__ import annotations

import re
from typing import Any

from oh_jupyter.control_messages import VARIABLE_PREFIX
from oh_jupyter.mcp_tools.kernel import Kernel

_REFERENCE = re.compile(rf"{VARIABLE_PREFIX}([^\W\d]\w*)")
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
            reply = await kernel.request("variable_text", {"name": match[1]})
            contents[name] = (reply.body or b"").decode()
    return {**arguments, **contents}
