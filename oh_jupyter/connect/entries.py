"""One entry in the text of a configuration file: set or removed, and nothing else changed.

Comments, order and layout of a person's file are theirs, so an entry is cut out of the text
or put into it, and the result is read again: unless it differs from before in that entry
alone, nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oh_jupyter.connect import json_text, toml_text, yaml_text
from oh_jupyter.errors import ConfigError

__all__ = ["Place", "remove_entry", "set_entry", "show_entry"]

OURS = frozenset(
    (
        *("type", "transport", "name", "command", "args", "env", "url", "httpUrl"),
        *("http_headers", "headers", "cmd", "envs", "uri"),
    )
)
"""Parts of an entry that say how we are reached; what else there is may be a person's."""


@dataclass(frozen=True)
class _Format:
    """How files of a kind are read, and how what is below some keys is changed in their text."""

    load: Callable[[str], Any]
    dump: Callable[[Sequence[str], Any], str]
    replace: Callable[[str, Sequence[str], Any], str]
    remove: Callable[[str, Sequence[str]], str]


_FORMATS = {
    ".json": _Format(json_text.load, json_text.dump, json_text.replace, json_text.remove),
    ".toml": _Format(toml_text.load, toml_text.dump, toml_text.replace, toml_text.remove),
    ".yaml": _Format(yaml_text.load, yaml_text.dump, yaml_text.replace, yaml_text.remove),
}


@dataclass(frozen=True)
class Place:
    """Where an entry is in files of a kind.

    Attributes:
        suffix: End of the files' names, which tells the format: .json, .toml or .yaml.
        section: Keys that lead to the entries.
        name: Name of the entry.
        listed: Whether the entries are a list, and have their names in them.
    """

    suffix: str
    section: tuple[str, ...]
    name: str
    listed: bool = False

    @property
    def format(self) -> _Format:
        """The format of the files."""
        return _FORMATS[self.suffix]

    def read(self, text: str) -> tuple[Any, list[Any] | dict[str, Any]]:
        """What a text holds, and the entries in it; ConfigError if they are not to be found."""
        try:
            document = self.format.load(text)
        except (ValueError, RecursionError) as problem:
            kind = self.suffix[1:].upper()
            raise ConfigError(f"it is no valid {kind}: {problem}") from problem
        found: Any = document
        for key in self.section:
            found = found.get(key) if isinstance(found, dict) else found
            found = {} if found is None else found
        found = [] if self.listed and found == {} else found
        if not isinstance(found, list if self.listed else dict):
            raise ConfigError(f"{'.'.join(self.section)} in it does not hold servers")
        return document, found

    def entry(self, entries: list[Any] | dict[str, Any]) -> dict[str, Any]:
        """Our entry among others, {} if there is none."""
        if isinstance(entries, list):
            named = [each for each in entries if self._is_ours(each)]
            return dict(named[0]) if named else {}
        found = entries.get(self.name)
        return found if isinstance(found, dict) else {}

    def others(self, entries: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        """The entries without ours."""
        if isinstance(entries, list):
            return [each for each in entries if not self._is_ours(each)]
        return {name: each for name, each in entries.items() if name != self.name}

    def _is_ours(self, entry: Any) -> bool:
        return isinstance(entry, dict) and entry.get("name") == self.name


def show_entry(place: Place, entry: Mapping[str, Any]) -> str:
    """An entry as it stands in a file that has nothing else."""
    if place.listed:
        return place.format.dump(place.section, [entry])
    return place.format.dump([*place.section, place.name], entry)


def set_entry(place: Place, text: str, entry: Mapping[str, Any]) -> str:
    """Add an entry to the text of a configuration file, or bring it up to date.

    Args:
        place: Where the entry belongs.
        text: What is in the file.
        entry: What it is to hold. What a person has added to it stays.

    Returns:
        The new text; the same one if the entry is there already.

    Raises:
        ConfigError: The text cannot be read, or not be changed without touching more.
    """
    document, entries = place.read(text)
    old = place.entry(entries)
    wanted = {**entry, **{key: old[key] for key in old if key not in OURS}}
    if old == wanted:
        return text
    if isinstance(entries, list):
        others = place.others(entries)
        new = place.format.replace(text, place.section, [*others, wanted])
    else:
        new = place.format.replace(text, [*place.section, place.name], wanted)
    return _checked(place, new, document, wanted)


def remove_entry(place: Place, text: str) -> str:
    """Take an entry out of the text of a configuration file.

    Args:
        place: Where the entry is.
        text: What is in the file.

    Returns:
        The new text; the same one if there is no such entry.

    Raises:
        ConfigError: The text cannot be read, or not be changed without touching more.
    """
    document, entries = place.read(text)
    if place.others(entries) == entries:
        return text
    if isinstance(entries, list):
        new = place.format.replace(text, place.section, place.others(entries))
    else:
        new = place.format.remove(text, [*place.section, place.name])
    return _checked(place, new, document, {})


def _checked(place: Place, text: str, before: Any, wanted: Mapping[str, Any]) -> str:
    """A changed text, if it holds the entry that is wanted and else what it held before."""
    try:
        after, entries = place.read(text)
        same = _without(place, after) == _without(place, before)
        if same and place.entry(entries) == wanted:
            return text
    except (ConfigError, KeyError, IndexError, AssertionError):
        pass
    raise ConfigError(
        f"{'.'.join(place.section)} in it is written in a way that cannot be changed without "
        "touching more than our entry; change it by hand, with what --print shows"
    )


def _without(place: Place, document: Any) -> Any:
    """A document without our entry, and without sections that hold nothing."""

    def bare(part: Any, keys: Sequence[str]) -> Any:
        if not keys:
            return place.others(part or ([] if place.listed else {}))
        if not isinstance(part, dict):
            return part
        inner = bare(part.get(keys[0]), keys[1:])
        rest = {key: each for key, each in part.items() if key != keys[0]}
        return {**rest, keys[0]: inner} if inner else rest

    return bare(document or {}, place.section)
