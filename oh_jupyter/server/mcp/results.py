"""Results of tools in MCP's words: text, images and errors, bounded.

Text is the result: where there is structured content beside it, Claude Code and Codex show
their models that alone, so none of our tools has any.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from oh_jupyter.ansi import strip_ansi
from oh_jupyter.messages import RUNNING_HINT
from oh_jupyter.server.mcp.notebooks import Cell

Result = dict[str, Any]
"""A ``CallToolResult`` of the MCP specification, as JSON."""

MAX_TEXT_CHARS = 30_000
"""Characters of text that a result has; of more, the beginning and the end are shown."""

NOTE_CHARS = 500
"""Characters that are kept free for what is said of the rest."""

WHOLE_LINES_CHARS = 500
"""Characters that beginning and end may each lack in order to consist of whole lines."""


_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")


def text(content: str) -> dict[str, Any]:
    """A content block of text."""
    return {"type": "text", "text": content}


def image(data_url: str) -> dict[str, Any] | None:
    """A content block of a picture in a data URL, or None if it is none."""
    match = _DATA_URL.fullmatch(data_url)
    if match is None or not match["kind"].startswith("image/"):
        return None
    return {"type": "image", "mimeType": match["kind"], "data": "".join(match["data"].split())}


def blob(data_url: str, path: str) -> dict[str, Any] | None:
    """A content block of a file, in a data URL, that is neither text nor a picture; or None."""
    match = _DATA_URL.fullmatch(data_url)
    if match is None:
        return None
    resource = {
        "uri": f"file://{path}",
        "mimeType": match["kind"],
        "blob": "".join(match["data"].split()),
    }
    return {"type": "resource", "resource": resource}


def result(*content: dict[str, Any] | None, is_error: bool = False) -> Result:
    """A result of content blocks; None is left out."""
    return {"content": [block for block in content if block], "isError": is_error}


def failure(reason: str) -> Result:
    """A result that says why there is none, and what to do next."""
    return result(text(reason), is_error=True)


def text_alone(found: Result) -> Result:
    """The same result without structured content, which is its text if there is no other."""
    kept = {name: value for name, value in found.items() if name != "structuredContent"}
    if "structuredContent" in found and not found["content"]:
        kept["content"] = [text(json.dumps(found["structuredContent"], ensure_ascii=False))]
    return kept


_RUNNING_HINT = (
    "Call run again with an empty command for more output, with is_input and a text to answer it, "
    "or with is_input and C-c to stop it. With blocking, a call waits however long its command is "
    "silent, until that has ended or the timeout is over."
)


def of_observation(observation: Mapping[str, Any], pictures: Iterable[str] = ()) -> Result:
    """The result that an Observation in its wire form is, with pictures from some of its extras."""
    kind = observation.get("observation")
    content = str(observation.get("content", ""))
    extras = dict(observation.get("extras") or {})
    if kind == "mcp":
        return _of_tool(content)
    if kind == "read" and content.startswith("data:"):
        shown = image(content) or blob(content, str(extras.get("path", "")))
        if shown is not None:
            return result(shown)
    images = [image(str(extras.get(name) or "")) for name in pictures]
    images += [image(url) for url in extras.get("image_urls") or []]
    if kind == "run_ipython":
        content = fold_library_frames(content)
    return result(
        text(_readable(content, extras) or str(observation.get("message", ""))),
        *images,
        is_error=_failed(kind, content, extras),
    )


_LIBRARY_FRAME = re.compile(
    r"File \S*(?:site-packages|dist-packages|[/\\]lib[/\\]python3\.\d+)[/\\]([^\s:]+:\d+), in (\w*)"
)
"""The head of a frame of an installed library, or of Python's own, in IPython's tracebacks."""


def fold_library_frames(content: str) -> str:
    """Shorten a traceback of IPython to the frames of the person's own code.

    Of each run of libraries' frames the last remains as one line: where the exception was raised.
    """
    if "Traceback (most recent call last)" not in content:
        return content
    kept: list[str] = []
    folded = 0
    for block in content.split("\n\n"):
        head, separator, frame = block.rpartition("Traceback (most recent call last)\n")
        match = _LIBRARY_FRAME.match(frame)
        if match is None:
            folded = 0
            kept.append(block)
            continue
        folded += 1
        line = f"[{folded} frames of libraries; the last is {match[1]} in {match[2]}. %tb has all]"
        if folded > 1 and not head:
            kept.pop()
        kept.append(f"{head}{separator}{line}" if head else line)
    return "\n\n".join(kept)


def _failed(kind: Any, content: str, extras: Mapping[str, Any]) -> bool:
    """Whether nothing came of an Action; a command that ends with another code than 0 did work."""
    if kind == "run":
        metadata = extras.get("metadata") or {}
        # A command that is still running has no code either, but says so at its end.
        started = metadata.get("exit_code") != -1 or bool(metadata.get("suffix"))
        return not started and content.startswith("ERROR:")
    if kind in ("edit", "read"):
        return extras.get("impl_source") == "oh_aci" and content.startswith("ERROR:\n")
    return kind in ("error", "user_rejected") or (kind == "browse" and bool(extras.get("error")))


def _of_tool(content: str) -> Result:
    """The result of a tool of the kernel, which is in the Observation as JSON."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return failure(content)
    if "error" in found:
        return failure(str(found["error"]))
    known = {"content", "structuredContent", "isError", "_meta"}
    answer = {name: value for name, value in found.items() if name in known and value is not None}
    if found.get("meta"):
        answer["_meta"] = found["meta"]
    return {"content": [], **answer}


def _readable(content: str, extras: Mapping[str, Any]) -> str:
    """The text as OpenHands shows it to an agent: a command's with what it says about itself."""
    metadata = extras.get("metadata")
    if not isinstance(metadata, Mapping):
        return content
    parts = f"{metadata.get('prefix') or ''}{content}{metadata.get('suffix') or ''}"
    if metadata.get("working_dir"):
        parts += f"\n[Current working directory: {metadata['working_dir']}]"
    if metadata.get("py_interpreter_path"):
        parts += f"\n[Python interpreter: {metadata['py_interpreter_path']}]"
    code = metadata.get("exit_code", -1)
    if code != -1 and f"exit code {code}" not in str(metadata.get("suffix")):
        parts += f"\n[Command finished with exit code {code}]"
    return parts.strip().replace(RUNNING_HINT, _RUNNING_HINT)


def bounded(found: Result, rest: str, limit: int = MAX_TEXT_CHARS) -> Result:
    """A result without the middle of its text where that has too many characters.

    It says what is left out, and by ``rest`` how to get that; pictures stay.
    """
    texts = [block["text"] for block in found["content"] if block["type"] == "text"]
    whole = "".join(texts)
    if len(whole) <= limit:
        return found
    start, end = _middle(whole, (limit - NOTE_CHARS) // 2)
    where = ""
    if len(texts) == 1 and "\n" in whole[start:end]:
        first = whole.count("\n", 0, start)
        where = f", lines {first + 1} to {first + whole.count(chr(10), start, end)} of this text,"
    note = f"[... {end - start} of {len(whole)} characters{where} are left out. {rest} ...]\n"
    if not whole[:start].endswith("\n"):
        note = f"\n{note}"
    return {**found, "content": _without(found["content"], start, end, note)}


def _middle(whole: str, half: int) -> tuple[int, int]:
    """Where what is left out begins and ends: between lines, unless they are very long."""
    start, end = half, len(whole) - half
    line_end = whole.rfind("\n", start - WHOLE_LINES_CHARS, start)
    line_start = whole.find("\n", end, end + WHOLE_LINES_CHARS)
    return (line_end + 1 or start), (line_start + 1 or end)


def _without(content: list[dict[str, Any]], start: int, end: int, note: str) -> list[Any]:
    """The blocks without a range of all their text, and a note in its place."""
    kept, at = [], 0
    for block in content:
        if block["type"] != "text":
            kept.append(block)
            continue
        told, before = block["text"], at
        at += len(told)
        if at <= start or before >= end:
            kept.append(block)
            continue
        told = told[: max(0, start - before)] + note + told[max(0, end - before) :]
        note = ""
        if told:
            kept.append(text(told))
    return kept


MAX_OUTPUT_CHARS = 10_000
"""Characters of one output that are shown."""

_TEXT_TYPES = ("text/plain", "text/markdown", "text/latex", "application/json", "text/html")
_IMAGE_TYPES = ("image/png", "image/jpeg")


def cell_blocks(index: int, cell: Cell, outputs: bool) -> list[dict[str, Any]]:
    """Content blocks of a cell: a text, then the pictures among its outputs."""
    head = f"=== cell {index} | {cell.get('id', '-')} | {cell['cell_type']}"
    if cell.get("execution_count"):
        head += f" [{cell['execution_count']}]"
    lines = [f"{head} ===", _joined(cell.get("source", ""))]
    pictures = []
    for output in (cell.get("outputs") or []) if outputs else []:
        told, shown = _output(output)
        if told:
            lines += ["--- output ---", told]
        pictures += shown
    return [text("\n".join(lines)), *pictures]


def named(index: int, cell: Cell) -> str:
    """What a cell is called: its position, and its id if it has one."""
    return f"cell {index} (id {cell['id']})" if cell.get("id") else f"cell {index}"


def raised(outputs: list[dict[str, Any]]) -> bool:
    """Whether an exception is among the outputs of a cell."""
    return any(output.get("output_type") == "error" for output in outputs)


def _output(output: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    kind = output.get("output_type")
    if kind == "stream":
        return _clipped(_joined(output.get("text", ""))), []
    if kind == "error":
        lines = "\n".join(output.get("traceback") or [str(output.get("evalue"))])
        return _clipped(fold_library_frames(strip_ansi(lines))), []
    data = output.get("data") or {}
    for name in _IMAGE_TYPES:
        if name in data:
            encoded = "".join(_joined(data[name]).split())
            shown = image(f"data:{name};base64,{encoded}")
            return _clipped(_joined(data.get("text/plain", ""))), [shown] if shown else []
    for name in _TEXT_TYPES:
        if name in data:
            return _clipped(_joined(data[name])), []
    return f"({', '.join(data)})" if data else "", []


def _joined(value: Any) -> str:
    return "".join(value) if isinstance(value, list) else str(value)


def _clipped(told: str) -> str:
    told = strip_ansi(told).rstrip("\n")
    if len(told) <= MAX_OUTPUT_CHARS:
        return told
    half = MAX_OUTPUT_CHARS // 2
    left_out = len(told) - MAX_OUTPUT_CHARS
    return f"{told[:half]}\n[... {left_out} characters left out ...]\n{told[-half:]}"
