"""TOML: edits of one table in a text.

tomlkit would move the comment before the next table, and mix line ends.
"""

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
    """Parse a text; raise ValueError if it is malformed."""
    return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))


def dump(section: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a text with nothing but a table, and the tables in it."""
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
    """Return the text with a new table in place of the old one, or at the end."""
    lines, old = _lines(text), _table_lines(text, section)
    newline = "\r\n" if "\r\n" in text else "\n"
    table = dump(section, value).replace("\n", newline)
    if old:
        others = [line for number, line in enumerate(lines) if number not in old]
        position = len([number for number in range(min(old)) if number not in old])
        return "".join([*others[:position], table, *others[position:]])
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + table


def remove(text: str, section: Sequence[str]) -> str:
    """Return the text without a table, its subtables, and the empty line before them."""
    lines, old = _lines(text), _table_lines(text, section)
    if old and min(old) > 0 and not lines[min(old) - 1].strip():
        old.add(min(old) - 1)
    return "".join(line for number, line in enumerate(lines) if number not in old)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def _table_lines(text: str, section: Sequence[str]) -> set[int]:
    """Return the line numbers of a table and its subtables, without the next one's comments."""
    numbers: set[int] = set()
    inside: list[int] = []
    lines = _lines(text)
    for number, line in enumerate([*lines, "["]):
        if _ANY_HEADER.match(line) and not _within_value(lines, number):
            # Comments and empty lines before a header belong to it.
            while inside and (
                not lines[inside[-1]].strip() or lines[inside[-1]].lstrip()[0] == "#"
            ):
                inside.pop()
            numbers.update(inside)
            header = _HEADER.match(line.rstrip())
            name = _names(header[1]) if header else []
            inside = [number] if name[: len(section)] == list(section) else []
        elif inside:
            inside.append(number)
    return numbers


def _within_value(lines: list[str], number: int) -> bool:
    """Return whether an apparent header is part of a multi-line list or string."""
    try:
        tomllib.loads("".join(lines[:number]).removeprefix("\ufeff").replace("\r\n", "\n"))
    except ValueError:
        return True
    return False


def _names(dotted: str) -> list[str]:
    try:
        part: Any = tomllib.loads(f"{dotted} = 0")
    except ValueError:
        return []
    names = []
    while isinstance(part, dict):
        ((name, part),) = part.items()
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
        # JSON escapes like TOML, except for this one.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return str(value.isoformat())
