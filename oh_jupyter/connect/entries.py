"""One entry in a configuration file: set or removed, without changing anything else.

Comments, order and layout of a person's file are kept: the entry is cut out of the text or
inserted, and the result is parsed again. If more than the entry differs, the file is not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import oh_jupyter.connect.json_text as json_text
import oh_jupyter.connect.toml_text as toml_text
import oh_jupyter.connect.yaml_text as yaml_text
from oh_jupyter.errors import ConfigError

OURS = frozenset(
    (
        *("type", "transport", "name", "command", "args", "env", "url", "httpUrl"),
        *("http_headers", "headers", "cmd", "envs", "uri"),
    )
)
"""Keys of an entry that we write; others may be a person's."""

_FORMATS: dict[str, Any] = {".json": json_text, ".toml": toml_text, ".yaml": yaml_text}


@dataclass(frozen=True)
class EntryLocation:
    """Location of an entry in a file: in a section, which is a mapping, or a list if ``listed``."""

    suffix: str
    section: tuple[str, ...]
    name: str
    listed: bool = False

    @property
    def format(self) -> Any:
        """Module that reads and edits the file's format."""
        return _FORMATS[self.suffix]

    def read(self, text: str) -> tuple[Any, list[Any] | dict[str, Any]]:
        """Parse a text; return it with the entries of the section, or raise ConfigError."""
        try:
            document = self.format.load(text)
        except (ValueError, RecursionError) as error:
            kind = self.suffix[1:].upper()
            raise ConfigError(f"it is not valid {kind}: {error}") from error
        entries: Any = document
        for key in self.section:
            entries = entries.get(key) if isinstance(entries, dict) else entries
            entries = {} if entries is None else entries
        entries = [] if self.listed and entries == {} else entries
        if not isinstance(entries, list if self.listed else dict):
            raise ConfigError(f"{'.'.join(self.section)} in it does not hold servers")
        return document, entries

    def entry(self, entries: list[Any] | dict[str, Any]) -> Any:
        """Return our entry, {} if there is none."""
        if isinstance(entries, list):
            return next((each for each in entries if self._is_ours(each)), {})
        entry = entries.get(self.name)
        return entry if isinstance(entry, dict) else {}

    def others(self, entries: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        """Return the entries without ours."""
        if isinstance(entries, list):
            return [each for each in entries if not self._is_ours(each)]
        return {name: each for name, each in entries.items() if name != self.name}

    def _is_ours(self, entry: Any) -> bool:
        return (entry.get("name") if isinstance(entry, dict) else entry) == self.name


def show_entry(location: EntryLocation, entry: Mapping[str, Any]) -> str:
    """Return the text of a file with nothing but an entry."""
    if location.listed:
        return str(location.format.dump(location.section, [entry]))
    return str(location.format.dump([*location.section, location.name], entry))


def notebook_of(location: EntryLocation, text: str) -> str:
    """Return the notebook that our entry in a text names, or ""."""
    try:
        entry = location.entry(location.read(text)[1])
    except ConfigError:
        return ""
    words = [str(word) for value in entry.values() if isinstance(value, list) for word in value]
    return next((words[n + 1] for n, word in enumerate(words[:-1]) if word == "--notebook"), "")


def set_entry(
    location: EntryLocation, text: str, entry: Mapping[str, Any] | str, decided: Iterable[str] = ()
) -> str:
    """Return a text with an entry; a person's additions to it stay, except for ``decided`` keys."""
    document, entries = location.read(text)
    old = location.entry(entries)
    updated: Any = entry
    if not isinstance(entry, str):
        updated = {**entry, **{key: old[key] for key in old if key not in {*OURS, *decided}}}
    if old == updated:
        return text
    if isinstance(entries, list):
        others = location.others(entries)
        new = location.format.replace(text, location.section, [*others, updated])
    else:
        new = location.format.replace(text, [*location.section, location.name], updated)
    return _checked(location, new, document, updated)


def remove_entry(location: EntryLocation, text: str) -> str:
    """Return a text without the entry, or raise ConfigError."""
    document, entries = location.read(text)
    if location.others(entries) == entries:
        return text
    if isinstance(entries, list):
        new = location.format.replace(text, location.section, location.others(entries))
    else:
        new = location.format.remove(text, [*location.section, location.name])
    return _checked(location, new, document, {})


def _checked(location: EntryLocation, text: str, before: Any, expected: Any) -> str:
    """Return a changed text if only the entry differs, or raise ConfigError."""
    try:
        after, entries = location.read(text)
        same = _without(location, after) == _without(location, before)
        if same and location.entry(entries) == expected:
            return text
    except (ConfigError, KeyError, IndexError, AssertionError):
        pass
    raise ConfigError(
        f"{'.'.join(location.section)} in it cannot be edited without changing more than our "
        "entry; edit it by hand, with the output of --print"
    )


def _without(location: EntryLocation, document: Any) -> Any:
    """Return a document without our entry and without empty sections."""

    def pruned(part: Any, keys: Sequence[str]) -> Any:
        if not keys:
            return location.others(part or ([] if location.listed else {}))
        if not isinstance(part, dict):
            return part
        inner = pruned(part.get(keys[0]), keys[1:])
        rest = {key: each for key, each in part.items() if key != keys[0]}
        return {**rest, keys[0]: inner} if inner else rest

    return pruned(document or {}, location.section)
