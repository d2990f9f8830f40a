"""Results of tools in MCP's format: text, images and errors, bounded.

None of our tools has structured content: Claude Code and Codex would show their models only that.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from oh_jupyter.ansi import as_shown, strip_ansi
from oh_jupyter.control_messages import RUNNING_HINT
from oh_jupyter.events.wire import EXTENSION_KEY, outcome_of
from oh_jupyter.mcp_tools.cells import Cell, joined
from oh_jupyter.output_text import fold_repeated_frames, readable
from oh_jupyter.text import shorten

MAX_SIDE_PIXELS = 1568
"""Longest side of a picture; models scale larger ones down."""

MAX_DATA_CHARS = 1_000_000
"""Maximum length of a picture in base64."""

_PNG_START = b"\x89PNG\r\n\x1a\n"


async def with_bounded_pictures(result: Result) -> Result:
    """Return a result whose pictures are scaled down if they are large."""
    if not any(map(_is_large, result["content"])):
        return result
    content: list[dict[str, Any]] = []
    for block in result["content"]:
        large = _is_large(block)
        content += await asyncio.to_thread(_bounded, block) if large else [block]
    return {**result, "content": content}


def _is_large(block: dict[str, Any]) -> bool:
    if block["type"] != "image":
        return False
    return len(block["data"]) > MAX_DATA_CHARS or max(_png_size(block)) > MAX_SIDE_PIXELS


def _png_size(block: dict[str, Any]) -> tuple[int, int]:
    """Return width and height of a PNG, or (0, 0)."""
    try:
        head = base64.b64decode(block["data"][:32])
    except ValueError:
        return 0, 0
    if not head.startswith(_PNG_START) or len(head) < 24:  # it may be incomplete
        return 0, 0
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def _bounded(block: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a large picture scaled down, with a note; without Pillow, a note may replace it."""
    try:
        from PIL import Image

        with Image.open(io.BytesIO(base64.b64decode(block["data"]))) as picture:
            size = picture.size
            picture.thumbnail((MAX_SIDE_PIXELS, MAX_SIDE_PIXELS))
            kind, data = _encoded(picture)
    except Exception:  # of any kind, from decoders of broken pictures and for bombs of pixels
        if len(block["data"]) <= MAX_DATA_CHARS:
            return [block]
        return [text("[A picture is too large to show. Make or save it at a smaller size.]")]
    shown = {"type": "image", "mimeType": kind, "data": base64.b64encode(data).decode()}
    note = f"[The picture is shown at {picture.width} x {picture.height} of {size[0]} x {size[1]}.]"
    return [shown, text(note)]


def _encoded(picture: Any) -> tuple[str, bytes]:
    """Return a picture as PNG, or as JPEG if that would be too long."""
    target = io.BytesIO()
    picture.save(target, "PNG")
    if len(target.getvalue()) * 4 / 3 <= MAX_DATA_CHARS:
        return "image/png", target.getvalue()
    target = io.BytesIO()
    picture.convert("RGB").save(target, "JPEG", quality=85)
    return "image/jpeg", target.getvalue()


Result = dict[str, Any]  # A ``CallToolResult`` of the MCP specification, as JSON

MAX_TEXT_CHARS = 30_000  # of a longer result, only start and end are shown
NOTE_CHARS = 500  # characters reserved for the note about the omitted part
WHOLE_LINES_CHARS = 500  # characters that start and end may each lose to consist of whole lines


SHOWN_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Formats of pictures that models take."""
_DATA_URL = re.compile(r"data:(?P<kind>[\w.+/-]+);base64,(?P<data>[A-Za-z0-9+/=\s]+)")


def text(content: str) -> dict[str, Any]:
    """Return a content block of text."""
    return {"type": "text", "text": content}


def image(data_url: str) -> dict[str, Any] | None:
    """Return a content block of a picture in a data URL, None for other data."""
    match = _DATA_URL.fullmatch(data_url)
    if match is None or match["kind"] not in SHOWN_IMAGES:
        return None
    return {"type": "image", "mimeType": match["kind"], "data": "".join(match["data"].split())}


def blob(data_url: str, path: str) -> dict[str, Any] | None:
    """Return a content block of a file in a data URL, None for other texts."""
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
    """Return a result of content blocks, without those that are None."""
    return {"content": [block for block in content if block], "isError": is_error}


def as_one_text(content: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring blocks of text by newlines, whatever a client would join them by."""
    blocks: list[dict[str, Any]] = []
    for block in content:
        if block["type"] != "text" or not blocks or blocks[-1]["type"] != "text":
            blocks.append(block)
        elif block["text"]:
            before = blocks.pop()["text"]
            newline = "" if not before or before.endswith("\n") else "\n"
            blocks.append(text(f"{before}{newline}{block['text']}"))
    return blocks


def failure(reason: str) -> Result:
    """Return an error with its reason and what to do next."""
    return result(text(reason), is_error=True)


def text_alone(structured: Result) -> Result:
    """Return a result without structured content, which becomes the text if there is none."""
    plain = {name: value for name, value in structured.items() if name != "structuredContent"}
    if "structuredContent" in structured and not structured["content"]:
        content = json.dumps(structured["structuredContent"], ensure_ascii=False)
        plain["content"] = [text(content)]
    return plain


_RUNNING_HINT = (
    "Call run again with an empty command for more output, with is_input and a text to send input, "
    "or with is_input and C-c to stop it. With blocking, a call waits until its command ends, "
    "however long it is silent, or the timeout is over."
)


def of_observation(observation: Mapping[str, Any], pictures: Iterable[str] = ()) -> Result:
    """Return an Observation in its wire form as a result, with pictures from some of its extras."""
    kind = observation.get("observation")
    content = str(observation.get("content", ""))
    extras = dict(observation.get("extras") or {})
    facts = observation.get(EXTENSION_KEY) or {}
    if isinstance(extras.get("metadata"), Mapping):
        extras["metadata"] = dict(extras["metadata"])
    if kind == "mcp":
        return _of_tool(content)
    if kind == "read" and content.startswith("data:"):
        shown = image(content) or blob(content, str(extras.get("path", "")))
        if shown is not None:
            return result(shown)
    images = [image(str(extras.get(name) or "")) for name in pictures]
    images += [image(url) for url in extras.get("image_urls") or []]
    if kind == "run" and (head := facts.get("head")):
        content = f"{head}\n[...]\n{extras['metadata'].pop('prefix', '')}{content}"
    if kind == "write":
        content = _written(observation)
    if kind == "edit" and extras.get("diff") and (around := facts.get("around_excerpts")):
        content = f"\n{clipped_diff(str(extras['diff']))}\n".join(around).strip()
    if kind == "user_rejected" and facts.get("reason_code") == "unanswered":
        content = _unanswered(str(facts["why"]))
    if kind == "run_ipython":
        content = fold_library_frames(content)
    return result(
        text(_readable(content, extras) or str(observation.get("message", ""))),
        *images,
        is_error=_is_error(observation),
    )


def _unanswered(why: str) -> str:
    """Return the text of a rejection that no person has decided."""
    return (
        f"It did not run, since no person has decided. {why} Nobody has rejected it: tell the "
        "person what waits, and call again when they are there to approve it."
    )


MAX_DIFF_CHARS = 2000  # characters of the diff in the result of an edit


def _written(observation: Mapping[str, Any]) -> str:
    """Return what a write did: the diff of an existing file."""
    written, diff = observation.get("message"), (observation.get("oh_jupyter") or {}).get("diff")
    if diff is None:
        return f"{written} It is new."
    return f"{written}\n{clipped_diff(diff)}" if diff else f"{written} Its text is the same."


def clipped_diff(diff: str) -> str:
    """Shorten a diff for an agent, which knows the name of the file."""
    lines = "\n".join(line for line in diff.split("\n") if not line.startswith(("--- ", "+++ ")))
    first = shorten(lines, MAX_DIFF_CHARS, marker="")
    if first == lines:
        return lines
    return first.rpartition("\n")[0] + "\n[... more changed lines ...]"


_LIBRARY_FRAME = re.compile(
    r"File \S*(?:site-packages|dist-packages|[/\\]lib[/\\]python3\.\d+)[/\\]([^\s:]+:\d+)"
    r", in ([\w.]*)"
)
"""Head of a frame of an installed or standard library in IPython's tracebacks."""
_COMPILED_FRAME = re.compile(
    r"File (\S+\.(?:pyx|pxi|pxd):\d+), in ([\w.]*).*(?:\n-+> .*Could not get source.*)?\n?"
)
"""Frame of a compiled library, whose sources are not installed."""


def fold_library_frames(content: str) -> str:
    """Shorten a traceback of IPython to the frames of the person's code.

    The last of consecutive library frames remains as one line: it may have raised the exception.
    """
    if "Traceback (most recent call last)" not in content:
        return content
    shown: list[str] = []
    folded = 0
    for block in content.split("\n\n"):
        head, separator, frame = block.rpartition("Traceback (most recent call last)\n")
        match = _LIBRARY_FRAME.match(frame) or _COMPILED_FRAME.fullmatch(frame)
        if match is None:
            folded = 0
            shown.append(block)
            continue
        folded += 1
        frames = "frame" if folded == 1 else "frames"
        line = (
            f"[{folded} {frames} of libraries; the last is {match[1]} in {match[2]}. %tb has all]"
        )
        if folded > 1 and not head:
            shown.pop()
        shown.append(f"{head}{separator}{line}" if head else line)
    return "\n\n".join(shown)


def _is_error(observation: Mapping[str, Any]) -> bool:
    """Return whether an Action failed; neither a cell that raised nor a running command did."""
    outcome = outcome_of(observation)
    match observation.get("observation"):
        case "run_ipython":
            return False
        case "run":
            return outcome == "failed"
        case _:
            return outcome != "done"


def of_own_tool(observation: Mapping[str, Any]) -> Result:
    """Return the Observation of a tool of ours, whose content is a text for the agent."""
    if observation.get("observation") == "mcp":
        return result(text(str(observation.get("content", ""))))
    return of_observation(observation)


def _of_tool(content: str) -> Result:
    """Return the result of a tool in the kernel from the JSON of its Observation."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return failure(content)
    if "error" in answer:
        return failure(str(answer["error"]))
    names = {"content", "structuredContent", "isError", "_meta"}
    shown = {name: value for name, value in answer.items() if name in names and value is not None}
    if answer.get("meta"):
        shown["_meta"] = answer["meta"]
    return {"content": [], **shown}


def _readable(content: str, extras: Mapping[str, Any]) -> str:
    """Return the text as OpenHands shows it to agents: a command's with its metadata."""
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


def bounded(whole: Result, rest: str, limit: int = MAX_TEXT_CHARS) -> Result:
    """Return a result without the middle of a long text; pictures stay.

    A note says what is omitted, and ``rest`` how to get it.
    """
    texts = [block["text"] for block in whole["content"] if block["type"] == "text"]
    whole_text = "".join(texts)
    if len(whole_text) <= limit:
        return whole
    start, end = _middle(whole_text, (limit - NOTE_CHARS) // 2)
    where = ""
    if len(texts) == 1 and "\n" in whole_text[start:end]:
        first = whole_text.count("\n", 0, start)
        where = (
            f", lines {first + 1} to {first + whole_text.count(chr(10), start, end)} of this text,"
        )
    note = f"[... {end - start} of {len(whole_text)} characters{where} are omitted. {rest} ...]\n"
    if not whole_text[:start].endswith("\n"):
        note = f"\n{note}"
    return {**whole, "content": _without(whole["content"], start, end, note)}


def _middle(whole_text: str, half: int) -> tuple[int, int]:
    """Return start and end of the omitted part: between lines, unless they are very long."""
    start, end = half, len(whole_text) - half
    line_end = whole_text.rfind("\n", start - WHOLE_LINES_CHARS, start)
    line_start = whole_text.find("\n", end, end + WHOLE_LINES_CHARS)
    return (line_end + 1 or start), (line_start + 1 or end)


def _without(content: list[dict[str, Any]], start: int, end: int, note: str) -> list[Any]:
    """Replace a range of the blocks' joined text by a note."""
    blocks, position = [], 0
    for block in content:
        if block["type"] != "text":
            blocks.append(block)
            continue
        shown, before = block["text"], position
        position += len(shown)
        if position <= start or before >= end:
            blocks.append(block)
            continue
        shown = shown[: max(0, start - before)] + note + shown[max(0, end - before) :]
        note = ""
        if shown:
            blocks.append(text(shown))
    return blocks


MAX_OUTPUT_CHARS = 10_000  # characters shown of one output


def cell_head(index: int, cell: Cell, state: str | None = None) -> str:
    """Return the line above a cell: position, id, type, and the number of its run or a state."""
    head = f"=== cell {index} | {cell.get('id', '-')} | {cell['cell_type']}"
    if state is None and cell["cell_type"] == "code":
        state = str(cell.get("execution_count") or "not run")
    return f"{head} [{state}] ===" if state else f"{head} ==="


def cell_outputs(cell: Cell) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the texts of a cell's outputs, and content blocks of the pictures among them."""
    texts, pictures = [], []
    for output in cell.get("outputs") or []:
        shown, images = _output(output)
        if shown:
            texts.append(shown)
        pictures += images
    return texts, pictures


def raised(outputs: list[dict[str, Any]]) -> bool:
    """Return whether an exception is among the outputs of a cell."""
    return any(output.get("output_type") == "error" for output in outputs)


def kept_in(file: str) -> dict[str, Any] | None:
    """Return a content block that names the file of a shortened output, or None without one."""
    return text(f"[The whole output is in {file}: open parts of it with read.]") if file else None


def long_outputs(cell: Cell) -> str:
    """Return the texts of a cell's outputs if one of them would be shortened, or ""."""
    texts = [_unclipped(output)[0] for output in cell.get("outputs") or []]
    return "\n".join(texts) if any(len(each) > MAX_OUTPUT_CHARS for each in texts) else ""


def _output(output: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    shown, images = _unclipped(output)
    return clipped(shown), images


def _unclipped(output: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """Return the text of an output, and content blocks of its pictures."""
    kind = output.get("output_type")
    if kind == "stream":
        return as_shown(joined(output.get("text", ""))).rstrip("\n"), []
    if kind == "error":
        lines = "\n".join(output.get("traceback") or [str(output.get("evalue"))])
        return fold_library_frames(fold_repeated_frames(_plain(lines))), []
    data = output.get("data") or {}
    for name in SHOWN_IMAGES:
        if name in data:
            encoded = "".join(joined(data[name]).split())
            shown = image(f"data:{name};base64,{encoded}")
            return _plain(data.get("text/plain", "")), [shown] if shown else []
    if readable_text := _plain(readable(data)):
        return readable_text, []
    return f"({', '.join(data)})" if data else "", []


def _plain(value: Any) -> str:
    return strip_ansi(joined(value)).rstrip("\n")


def clipped(output: str) -> str:
    """Return an output without the middle if it is too long to show."""
    marker = "\n[... {omitted} characters omitted ...]\n"
    return shorten(output, MAX_OUTPUT_CHARS, keep="ends", marker=marker)
