"""TOML: the tables of one entry in a text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"^[ \t]*\[([^\[\]]+)\][ \t]*(?:#.*)?$")
_ANY_HEADER = re.compile(r"^[ \t]*\[")


def load(text: str) -> dict[str, Any]:
    """What a text holds. ValueError if it is no TOML."""
    return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def dump(section: Sequence[str], value: Mapping[str, Any]) -> str:
    """A text that holds the table of an entry alone, and the tables in it."""
    lines = [f"[{'.'.join(map(_key, section))}]"]
    tables = {name: part for name, part in value.items() if isinstance(part, Mapping)}
    small = {name for name, part in tables.items() if not _holds_tables(part)}
    for name, part in value.items():
        if name not in tables or name in small:
            lines.append(f"{_key(name)} = {_value(part)}")
    text = "\n".join(lines) + "\n"
    for name in tables.keys() - small:
        text += "\n" + dump([*section, name], tables[name])
    return text


def replace(text: str, section: Sequence[str], value: Mapping[str, Any]) -> str:
    """The text with another table of that name: where it was, or at the end."""
    lines, found = _lines(text), _found(text, section)
    newline = "\r\n" if "\r\n" in text else "\n"
    table = dump(section, value).replace("\n", newline)
    if found:
        kept = [line for number, line in enumerate(lines) if number not in found]
        place = len([number for number in range(min(found)) if number not in found])
        return "".join([*kept[:place], table, *kept[place:]])
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + table


def remove(text: str, section: Sequence[str]) -> str:
    """The text without the tables of that name, and the empty line before them."""
    lines, found = _lines(text), _found(text, section)
    if found and min(found) > 0 and not lines[min(found) - 1].strip():
        found.add(min(found) - 1)
    return "".join(line for number, line in enumerate(lines) if number not in found)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def _found(text: str, section: Sequence[str]) -> set[int]:
    """Numbers of the lines of a table and of those below it, without what leads to the next."""
    found: set[int] = set()
    inside: list[int] = []
    lines = _lines(text)
    for number, line in enumerate([*lines, "["]):
        if _ANY_HEADER.match(line) and not _within_value(lines, number):
            # Comments and empty lines before a header are the next table's.
            while inside and (
                not lines[inside[-1]].strip() or lines[inside[-1]].lstrip()[0] == "#"
            ):
                inside.pop()
            found.update(inside)
            header = _HEADER.match(line.rstrip())
            name = _names(header[1]) if header else []
            inside = [number] if name[: len(section)] == list(section) else []
        elif inside:
            inside.append(number)
    return found


def _within_value(lines: list[str], number: int) -> bool:
    """Whether a line that looks like a header belongs to a list or a text of several lines."""
    try:
        tomllib.loads("".join(lines[:number]).removeprefix("\ufeff").replace("\r\n", "\n"))
    except ValueError:
        return True
    return False


def _names(dotted: str) -> list[str]:
    try:
        found: Any = tomllib.loads(f"{dotted} = 0")
    except ValueError:
        return []
    names = []
    while isinstance(found, dict):
        ((name, found),) = found.items()
        names.append(name)
    return names


def _holds_tables(value: Mapping[str, Any]) -> bool:
    return any(isinstance(part, Mapping) for part in value.values())


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(part)}" for name, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        # JSON escapes as TOML does, but for this one.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return str(value.isoformat())
