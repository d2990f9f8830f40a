"""Operations for the context of a prompt: the files that a person can add, and what was added."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from oh_jupyter.control_messages import Reply
from oh_jupyter.errors import WireError
from oh_jupyter.events.json import encode_json
from oh_jupyter.kernel.control.rpc import Request, operation

if TYPE_CHECKING:
    from oh_jupyter.agents import Attachment

MAX_FILES = 30
"""Maximum number of files in a reply."""

MAX_SEEN = 20_000
"""Maximum number of files that a search looks at."""

MAX_ATTACHMENTS = 50
"""Maximum number of attachments of a prompt."""

_SKIPPED = {"__pycache__", "node_modules", "site-packages"}


@operation("workspace_files")
async def _workspace_files(request: Request) -> Reply:
    """List files of the workspace whose path contains ``text``, the best matches first."""
    executor, text = request.runtime.executor, request.text("text")
    files = await executor.in_thread(find_files, executor.workspace_dir, text)
    return Reply(body=encode_json(files))


def find_files(root: str, text: str) -> list[str]:
    """Return relative paths that contain a text, first those of files whose name begins with it."""
    wanted = text.lower()
    matches = [path for path in _files(root) if wanted in path.lower()]

    def rank(path: str) -> tuple[bool, int, str]:
        return not os.path.basename(path).lower().startswith(wanted), path.count("/"), path

    return sorted(matches, key=rank)[:MAX_FILES]


def _files(root: str) -> Iterator[str]:
    """Yield the paths of files that are not hidden, up to the limit."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            each for each in folders if not each.startswith(".") and each not in _SKIPPED
        )
        for name in sorted(names):
            seen += 1
            if seen > MAX_SEEN:
                return
            if not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


async def attachments(request: Request) -> list[Attachment]:
    """Return the attachments that the field ``context`` of a prompt lists.

    Raises:
        WireError: An entry is invalid, or its file does not exist.
        InspectionError: There is no such variable, or it cannot be described in time.
    """
    entries = request.fields.get("context") or []
    if not isinstance(entries, list) or len(entries) > MAX_ATTACHMENTS:
        raise WireError(f"'context' must be a list of at most {MAX_ATTACHMENTS} objects", "context")
    return [await _attachment(request, entry) for entry in entries]


async def _attachment(request: Request, entry: Any) -> Attachment:
    from oh_jupyter.agents import Attachment

    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise WireError("Each entry of 'context' must be an object with a 'name'", "context")
    name, kind = entry["name"], entry.get("kind")
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
