"""The context of a prompt: the variables, files and texts that a person adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from oh_jupyter.errors import WireError
from oh_jupyter.kernel.control.rpc import Request

if TYPE_CHECKING:
    from oh_jupyter.agents import Attachment

MAX_ATTACHMENTS = 50
"""Maximum number of attachments of a prompt."""


async def attachments(request: Request, context: Sequence[Mapping[str, Any]]) -> list[Attachment]:
    """Return the attachments that the context of a prompt lists.

    Raises:
        WireError: An entry is invalid, or its file does not exist.
        InspectionError: There is no such variable, or it cannot be described in time.
    """
    if len(context) > MAX_ATTACHMENTS:
        raise WireError(f"'context' must be a list of at most {MAX_ATTACHMENTS} objects", "context")
    return [await _attachment(request, entry) for entry in context]


async def _attachment(request: Request, entry: Mapping[str, Any]) -> Attachment:
    from oh_jupyter.agents import Attachment

    name, kind = entry.get("name"), entry.get("kind")
    if not isinstance(name, str):
        raise WireError("Each entry of 'context' must be an object with a 'name'", "context")
    if kind == "variable":
        text, _ = await request.oh.host.inspector.detail(name)
        return Attachment(f"Variable {name}", f"jupyter:variable/{quote(name)}", text)
    if kind == "file":
        path = Path(request.runtime.executor.workspace_dir, name)
        if not path.exists():
            raise WireError(
                f"There is no file {path}. Remove it from the prompt's context", "context"
            )
        return Attachment(name, path.resolve().as_uri())
    if kind == "text" and isinstance(entry.get("text"), str):
        return Attachment(name, f"jupyter:{quote(str(entry.get('id') or name))}", entry["text"])
    raise WireError("An entry's 'kind' must be variable, file, or text with a 'text'", "context")
