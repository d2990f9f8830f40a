"""Which MCP servers are to run: what is understood, and what is refused."""

from __future__ import annotations

import pytest

from oh_jupyter.config import Settings, load_settings
from oh_jupyter.errors import ConfigError, WireError
from oh_jupyter.runtime.mcp import McpServer, parse_servers


def test_lists_and_strings_are_understood() -> None:
    assert parse_servers([]) == []
    assert parse_servers([{"name": "a", "command": "x"}]) == [McpServer("a", "x")]
    listed = {"name": "a-b_1", "command": "x", "args": ["-y", "b c"], "env": {"K": "V=1"}}
    assert parse_servers([listed]) == [McpServer("a-b_1", "x", ("-y", "b c"), {"K": "V=1"})]
    written = {"name": "a", "command": " x ", "args": "-y 'b c'", "env": "K=V=1, K2=V2"}
    expected = McpServer("a", "x", ("-y", "b c"), {"K": "V=1", "K2": "V2"})
    assert parse_servers([written]) == [expected]
    empty = {"name": "a", "command": "x", "args": None, "env": None}
    assert parse_servers([empty]) == [McpServer("a", "x")]


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ("x", "[0]"),
        ({}, "[0].name"),
        ({"name": "", "command": "x"}, "[0].name"),
        ({"name": "a b", "command": "x"}, "[0].name"),
        ({"name": "ä", "command": "x"}, "[0].name"),
        ({"name": 1, "command": "x"}, "[0].name"),
        ({"name": "a"}, "[0].command"),
        ({"name": "a", "command": ""}, "[0].command"),
        ({"name": "a", "command": "x -y"}, "[0].command"),
        ({"name": "a", "command": "x", "args": "'open"}, "[0].args"),
        ({"name": "a", "command": "x", "args": [1]}, "[0].args"),
        ({"name": "a", "command": "x", "args": {}}, "[0].args"),
        ({"name": "a", "command": "x", "env": "K"}, "[0].env"),
        ({"name": "a", "command": "x", "env": ["K"]}, "[0].env"),
        ({"name": "a", "command": "x", "env": {"K": 1}}, "[0].env"),
        ({"name": "a", "command": "x", "url": "y"}, "[0].url"),
    ],
)
def test_invalid_settings_are_named(entry: object, field: str) -> None:
    with pytest.raises(WireError) as caught:
        parse_servers([entry])
    assert caught.value.field == field


def test_two_of_a_name_and_no_list_are_refused() -> None:
    server = {"name": "a", "command": "x"}
    with pytest.raises(WireError, match="Two MCP servers are named 'a'"):
        parse_servers([server, server])
    with pytest.raises(WireError, match="must be a list"):
        parse_servers({"a": server})


def test_secrets_are_not_shown() -> None:
    (server,) = parse_servers([{"name": "a", "command": "x", "env": {"KEY": "geheim"}}])
    assert "geheim" not in repr(server)
    with pytest.raises(WireError) as caught:
        parse_servers([{"name": "a", "command": "x", "env": "geheim"}])
    assert "geheim" not in str(caught.value)


def test_they_are_settings_too(tmp_path) -> None:
    assert Settings().mcp_servers == ()
    variable = {"OH_JUPYTER_MCP_SERVERS": '[{"name": "a", "command": "x"}]'}
    (entry,) = load_settings(environ=variable).mcp_servers
    assert entry == {"name": "a", "command": "x"}
    config = tmp_path / "config.toml"
    config.write_text(
        '[mcp]\nstdio_servers = [{name = "fetch", command = "uvx", args = ["mcp-server-fetch"]}]\n'
    )
    servers = parse_servers(load_settings(environ={}, config_file=config).mcp_servers)
    assert servers == [McpServer("fetch", "uvx", ("mcp-server-fetch",))]
    with pytest.raises(ConfigError, match="OH_JUPYTER_MCP_SERVERS"):
        load_settings(environ={"OH_JUPYTER_MCP_SERVERS": "[1"})
