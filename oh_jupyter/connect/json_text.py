"""JSON with comments, as editors use it: edits of one value in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.decoder import JSONDecoder, scanstring  # type: ignore[attr-defined]
from typing import Any

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|(//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|(,)(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")


def load(text: str) -> Any:
    """Parse a text, an empty one as {}; raise ValueError if it is malformed."""
    plain = _plain(text)
    return json.loads(plain) if plain.strip() else {}


def dump(section: Sequence[str], value: Any) -> str:
    """Return a text with nothing but a value below the keys of a section."""
    for key in reversed(section):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class _Part:
    """Range of a value in a text, and the members of an object by key."""

    start: int
    end: int
    members: dict[str, _Part]
    member_starts: dict[str, int]


def replace(text: str, section: Sequence[str], value: Any) -> str:
    """Return the text with a new value below the keys, adding missing ones."""
    if not _plain(text).strip():
        return text + dump(section, value)
    part, keys = _parse(text), list(section)
    while keys and keys[0] in part.members:
        part = part.members[keys.pop(0)]
    is_object = text[part.start] == "{"
    for key in reversed(keys[1:] if is_object else keys):
        value = {key: value}
    if keys and is_object:
        return _insert(text, part, keys[0], value)
    return text[: part.start] + _render(text, part.start, value) + text[part.end :]


def remove(text: str, section: Sequence[str]) -> str:
    """Return the text without the member that the keys lead to."""
    holder = _parse(text)
    for key in section[:-1]:
        holder = holder.members[key]
    plain, key = _plain(text, commas=True), section[-1]
    if len(holder.members) == 1 and _plain(text) == text:  # without comments
        return f"{text[: holder.start]}{{}}{text[holder.end :]}"
    start, end = holder.member_starts[key], holder.members[key].end
    following = _SPACE.match(plain, end)
    assert following is not None
    if plain[following.end()] == ",":
        end = following.end() + 1
    else:  # the last one: remove the comma before it, keep what is in between
        before = plain[:start].rstrip()
        if before.endswith(","):
            comma = len(before) - 1
            text = text[:comma] + text[comma + 1 :]
            start, end = start - 1, end - 1
    return _without_line(text, start, end)


def _without_line(text: str, start: int, end: int) -> str:
    """Remove a range of the text, and the line if that becomes empty."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    rest = text[end : line_end if line_end >= 0 else len(text)]
    if text[line_start:start].strip() or rest.strip():
        return text[:start] + text[end:].lstrip(" ")
    return text[:line_start] + text[line_end + 1 if line_end >= 0 else len(text) :]


def _insert(text: str, holder: _Part, key: str, value: Any) -> str:
    plain = _plain(text, commas=True)
    newline = "\r\n" if "\r\n" in text else "\n"
    if not holder.members:
        inner = text[holder.start + 1 : holder.end - 1]
        outer = _indent_of_line(text, holder.start)
        indent = outer + _unit(text)
        member = _member(key, value, indent, _unit(text), newline)
        comments = inner.rstrip() if inner.strip() else ""
        body = f"{comments}{newline}{indent}{member}{newline}{outer}"
        return text[: holder.start + 1] + body + text[holder.end - 1 :]
    last = max(part.end for part in holder.members.values())
    close = holder.end - 1
    first = min(holder.member_starts.values())
    if "\n" not in text[holder.start : first]:
        return f"{text[:last]}, {json.dumps(key)}: {json.dumps(value)}{text[last:]}"
    indent = _indent_of_line(text, first)
    between = text[last:close]
    has_comma = "," in plain[last:close]
    tail = between.rstrip()
    member = _member(key, value, indent, _unit(text), newline)
    return (
        text[:last]
        + ("" if has_comma else ",")
        + f"{tail}{newline}{indent}{member}{',' if has_comma else ''}"
        + between[len(tail) :]
        + text[close:]
    )


def _member(key: str, value: Any, indent: str, unit: str, newline: str) -> str:
    rendered = json.dumps(value, indent=unit, ensure_ascii=False)
    return f"{json.dumps(key)}: {rendered}".replace("\n", newline + indent)


def _render(text: str, position: int, value: Any) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    rendered = json.dumps(value, indent=_unit(text), ensure_ascii=False)
    return rendered.replace("\n", newline + _indent_of_line(text, position))


def _indent_of_line(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


def _unit(text: str) -> str:
    """Return the indentation of one level."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match else "  "


def _plain(text: str, commas: bool = False) -> str:
    """Blank out comments, and trailing commas unless they are to stay."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\r\n]", " ", match[0]) if match[1] else match[0]

    bare = _COMMENT.sub(blank, text)
    bare = " " + bare[1:] if bare.startswith("\ufeff") else bare
    return bare if commas else _TRAILING_COMMA.sub(blank, bare)


def _parse(text: str) -> _Part:
    plain = _plain(text)
    start = _SPACE.match(plain)
    assert start is not None
    return _part(plain, start.end())


def _part(plain: str, start: int) -> _Part:
    _, end = JSONDecoder().raw_decode(plain, start)
    members: dict[str, _Part] = {}
    starts: dict[str, int] = {}
    position = start + 1
    while plain[start] == "{":
        position = _skip(plain, position, ",")
        if plain[position] == "}":
            break
        key_start = position
        key, position = scanstring(plain, position + 1, True)
        members[key] = _part(plain, _skip(plain, position, ":"))
        starts[key], position = key_start, members[key].end
    return _Part(start, end, members, starts)


def _skip(plain: str, position: int, sign: str) -> int:
    while plain[position].isspace() or plain[position] == sign:
        position += 1
    return position
