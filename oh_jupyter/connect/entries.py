"""One entry in the text of a configuration file: set or removed, and nothing else changed.

Comments, order and layout of a person's file are theirs, so an entry is cut out of the text
or put into it, and the result is read again: unless it differs from before in that entry
alone, nothing is done.
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
"""Parts of an entry that say how we are reached; what else there is may be a person's."""


_FORMATS: dict[str, Any] = {".json": json_text, ".toml": toml_text, ".yaml": yaml_text}


@dataclass(frozen=True)
class Place:
    """Where an entry is in a kind of file; listed ones have their names in them, or are names."""

    suffix: str
    section: tuple[str, ...]
    name: str
    listed: bool = False

    @property
    def format(self) -> Any:
        """The module that reads and changes texts of the files' format."""
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

    def entry(self, entries: list[Any] | dict[str, Any]) -> Any:
        """Our entry among others, {} if there is none."""
        if isinstance(entries, list):
            return next((each for each in entries if self._is_ours(each)), {})
        found = entries.get(self.name)
        return found if isinstance(found, dict) else {}

    def others(self, entries: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        """The entries without ours."""
        if isinstance(entries, list):
            return [each for each in entries if not self._is_ours(each)]
        return {name: each for name, each in entries.items() if name != self.name}

    def _is_ours(self, entry: Any) -> bool:
        return (entry.get("name") if isinstance(entry, dict) else entry) == self.name


def show_entry(place: Place, entry: Mapping[str, Any]) -> str:
    """An entry as it stands in a file that has nothing else."""
    if place.listed:
        return str(place.format.dump(place.section, [entry]))
    return str(place.format.dump([*place.section, place.name], entry))


def notebook_of(place: Place, text: str) -> str:
    """The notebook that our entry in a text names, "" if there is no entry or no notebook."""
    try:
        entry = place.entry(place.read(text)[1])
    except ConfigError:
        return ""
    words = [str(word) for value in entry.values() if isinstance(value, list) for word in value]
    return next((words[n + 1] for n, word in enumerate(words[:-1]) if word == "--notebook"), "")


def set_entry(
    place: Place, text: str, entry: Mapping[str, Any] | str, decided: Iterable[str] = ()
) -> str:
    """The text of a file with an entry, in which what a person has set stays unless ``decided``."""
    document, entries = place.read(text)
    old = place.entry(entries)
    wanted: Any = entry
    if not isinstance(entry, str):
        wanted = {**entry, **{key: old[key] for key in old if key not in {*OURS, *decided}}}
    if old == wanted:
        return text
    if isinstance(entries, list):
        others = place.others(entries)
        new = place.format.replace(text, place.section, [*others, wanted])
    else:
        new = place.format.replace(text, [*place.section, place.name], wanted)
    return _checked(place, new, document, wanted)


def remove_entry(place: Place, text: str) -> str:
    """The text of a configuration file without the entry; ConfigError as for ``set_entry``."""
    document, entries = place.read(text)
    if place.others(entries) == entries:
        return text
    if isinstance(entries, list):
        new = place.format.replace(text, place.section, place.others(entries))
    else:
        new = place.format.remove(text, [*place.section, place.name])
    return _checked(place, new, document, {})


def _checked(place: Place, text: str, before: Any, wanted: Any) -> str:
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
