"""YAML in block style, as programs write it: edits of one entry of a top-level mapping."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_TOP_KEY = r"^{key}[ \t]*:(?P<value>[^\r\n]*)\r?$"


def load(text: str) -> Any:
    """Parse a text, an empty one as {}; raise ValueError if it is malformed."""
    import yaml

    try:
        return yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def dump(section: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return a text with nothing but an entry below the keys of a section."""
    import yaml

    nested: Any = dict(value)
    for key in reversed(section):
        nested = {key: nested}
    return str(yaml.safe_dump(nested, sort_keys=False, allow_unicode=True))


def replace(text: str, section: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a new entry in place of the old one, or as the section's last."""
    holder, name = section
    newline = "\r\n" if "\r\n" in text else "\n"
    header = _header(text, holder)
    if header is None:
        joint = newline if text and not text.endswith("\n") else ""
        return text + joint + dump(section, value).replace("\n", newline)
    if header["value"].split("#")[0].strip() in ("{}", "null", "~"):
        start, end = header.span("value")
        text = text[:start] + text[end:]
    lines, block = _block(text, holder)
    entries = _entries(lines, block)
    indent = next((_indent(lines[numbers[0]]) for numbers in entries.values()), 2)
    entry = dump([name], value).splitlines()
    new = [" " * indent + line + newline for line in entry]
    old = entries.get(name)
    first, last = (old[0], old[-1] + 1) if old else (_end(lines, block),) * 2
    if first and not lines[first - 1].endswith("\n"):
        lines[first - 1] += newline
    return "".join([*lines[:first], *new, *lines[last:]])


def remove(text: str, section: Sequence[str]) -> str:
    """Return the text without an entry; an empty section becomes {}."""
    holder, name = section
    lines, block = _block(text, holder)
    entries = _entries(lines, block)
    numbers = entries.pop(name, None)
    if numbers is None:
        return text
    if not entries:
        line = lines[block.start - 1]
        key, colon, rest = line.partition(":")
        lines[block.start - 1] = f"{key}{colon} {{}}{rest}"
    return "".join(line for number, line in enumerate(lines) if number not in numbers)


def _header(text: str, key: str) -> re.Match[str] | None:
    return re.search(_TOP_KEY.format(key=re.escape(key)), text, re.MULTILINE)


def _block(text: str, holder: str) -> tuple[list[str], range]:
    """Return the lines of a text, and the range of those below a top-level key."""
    lines = text.splitlines(keepends=True)
    header = _header(text, holder)
    start = 0 if header is None else text.count("\n", 0, header.start()) + 1
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t#-"):
        end += 1
    return lines, range(start, end)


def _end(lines: list[str], block: range) -> int:
    """Return the end of a block without trailing empty lines and comments of the next key."""
    end = block.stop
    while end > block.start and (not lines[end - 1].strip() or lines[end - 1][0] == "#"):
        end -= 1
    return end


def _entries(lines: list[str], block: range) -> dict[str, range]:
    """Return the line numbers of each entry of a block by name."""
    indents = [_indent(lines[number]) for number in block if _content(lines[number])]
    entries: dict[str, range] = {}
    name, first, last = "", 0, 0
    for number in block:
        line = lines[number]
        if not _content(line):
            continue
        if _indent(line) == min(indents):
            if name:
                entries[name] = range(first, last + 1)
            name, first = line.split(":")[0].strip().strip("\"'"), number
        last = number
    if name:
        entries[name] = range(first, last + 1)
    return entries


def _content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
