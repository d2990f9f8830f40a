"""One entry in a person's file: set, brought up to date, removed; all else stays as it was."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml

from oh_jupyter.connect.entries import EntryLocation, remove_entry, set_entry
from oh_jupyter.errors import ConfigError

JSON = EntryLocation(".json", ("mcpServers",), "ours")
LISTED = EntryLocation(".json", ("mcp_servers",), "ours", listed=True)
TOML = EntryLocation(".toml", ("mcp_servers",), "ours")
YAML = EntryLocation(".yaml", ("extensions",), "ours")
ENTRY = {"command": "/bin/x", "args": ["mcp", "--notebook", 'ä "b".ipynb'], "env": {"A": "1"}}

COMMENTED = """\
// mine
{
    /* keep { this, } */
    "theme": "dark", // "quoted"
    "mcpServers": {
        "other": {"command": "o", "args": ["a//b", "c,]"]}, // theirs
    },
}
"""
TABLES = """\
# mine
model = "gpt"   # spaced

[mcp_servers]  # all
[mcp_servers.other]
command = "o"
args = [
  "[mcp_servers.ours]",
]

# about the next
[profiles.x]
model = "y"
"""
BLOCKS = """\
# mine
GOOSE_MODEL: x   # spaced
extensions:
  # theirs
  developer:
    enabled: true
    args: ['a: b']

# after
other: {a: 1}
"""
TEXTS = [
    *((JSON, text) for text in ("", "{}", "{\n}\n", '{"a": 1}', COMMENTED, "\ufeff{}")),
    *((JSON, text) for text in ('{"mcpServers": {}}', '{"mcpServers": {"o": {}}, "z": [1, 2]}')),
    (JSON, '{\r\n\t"mcpServers": {\r\n\t\t"o": {}\r\n\t}\r\n}\r\n'),
    (JSON, '{\n  "mcpServers": {\n    "o": {}\n    // last\n  }\n}\n'),
    (JSON, '{"mcpServers": null}'),
    (LISTED, ""),
    (LISTED, '{"mcp_servers": [{"name": "o", "args": []}, 5], "x": 1}'),
    *((TOML, text) for text in ("", TABLES, "a = 1", "a = 1\r\n[b]\r\n", "[mcp_servers.o]\nx = 1")),
    *((YAML, text) for text in ("", BLOCKS, "extensions: {}\n", "extensions:\n", "a: 1")),
    (YAML, "extensions:\n    o:\n        x: 1"),
    (YAML, "a: 1\r\nextensions:\r\n  o:\r\n    x: 1\r\nb: 2\r\n"),
]


@pytest.mark.parametrize(("place", "text"), TEXTS)
def test_an_entry_is_added_once_and_removed_without_a_trace(
    place: EntryLocation, text: str
) -> None:
    document, _ = place.read(text)
    added = set_entry(place, text, {"name": "ours", **ENTRY} if place.listed else ENTRY)
    _, entries = place.read(added)
    assert place.entry(entries)["args"] == ENTRY["args"]
    assert set_entry(place, added, place.entry(entries)) == added
    removed = remove_entry(place, added)
    left, others = place.read(removed)
    assert not place.entry(others)
    if place.section[0] in document and document[place.section[0]]:
        assert left == document
    assert remove_entry(place, removed) == removed
    assert added.count("\r\n") == (added.count("\n") if "\r\n" in text else 0)


@pytest.mark.parametrize(("place", "text"), [(JSON, COMMENTED), (TOML, TABLES), (YAML, BLOCKS)])
def test_comments_order_and_layout_stay(place: EntryLocation, text: str) -> None:
    added = set_entry(place, text, ENTRY)
    lines = iter(added.splitlines())
    assert all(any(line == original for line in lines) for original in text.splitlines())
    assert remove_entry(place, added) == text
    changed = set_entry(place, added, {"url": "http://x/mcp"})
    assert place.entry(place.read(changed)[1]) == {"url": "http://x/mcp"}
    assert remove_entry(place, changed) == text


def test_a_persons_additions_to_the_entry_stay() -> None:
    text = '{"mcpServers": {"ours": {"command": "old", "env": {}, "alwaysAllow": ["read"]}}}'
    entry = json.loads(set_entry(JSON, text, ENTRY))["mcpServers"]["ours"]
    assert entry == {**ENTRY, "alwaysAllow": ["read"]}
    text = '[mcp_servers.ours]\ncommand = "old"\n[mcp_servers.ours.tools.run]\nmode = "ask"\n'
    entry = tomllib.loads(set_entry(TOML, text, ENTRY))["mcp_servers"]["ours"]
    assert entry == {**ENTRY, "tools": {"run": {"mode": "ask"}}}
    text = "extensions:\n  ours:\n    enabled: false\n    cmd: old\n"
    entry = yaml.safe_load(set_entry(YAML, text, {"enabled": True, "cmd": "new"}))
    assert entry == {"extensions": {"ours": {"enabled": False, "cmd": "new"}}}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (JSON, "{"),
        (JSON, "[1]"),
        (JSON, '"text"'),
        (JSON, '{"mcpServers": []}'),
        (JSON, '{"mcpServers": 5}'),
        (JSON, "{} {}"),
        (JSON, "[" * 5000),
        (JSON, '{"a": 1 // "b": 2'),
        (LISTED, '{"mcp_servers": {}, "x": '),
        (LISTED, '{"mcp_servers": {"a": 1}}'),
        (TOML, "a = "),
        (TOML, "mcp_servers = 5"),
        (TOML, "mcp_servers = { other = { command = 'o' } }"),
        (TOML, "[[mcp_servers]]\nname = 'o'"),
        (YAML, "a: [1"),
        (YAML, "- 1"),
        (YAML, "extensions: [1]"),
        (YAML, "extensions: {developer: {enabled: true}}"),
        (YAML, "extensions: &x\n  a: {}\nb: *y\n"),
    ],
)
def test_an_entry_that_cannot_be_changed_alone_is_refused(place: EntryLocation, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        set_entry(place, text, ENTRY)
    assert "\n" not in str(refused.value).strip() or place is YAML


def test_of_two_entries_by_one_name_none_is_left() -> None:
    text = '{"mcpServers": {"ours": {"command": "a"}, "ours": {"command": "b"}}}'
    assert json.loads(remove_entry(JSON, text)) == {"mcpServers": {}}
