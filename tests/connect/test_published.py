"""Published descriptions for agents: the skill, the plugin and the registry entry."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from oh_jupyter import __version__
from oh_jupyter.cli import main

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "oh-jupyter"
SKILLS = sorted(PLUGIN.glob("skills/*/SKILL.md"))


def read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))


@pytest.mark.parametrize("file", SKILLS, ids=lambda file: file.parent.name)
def test_a_skill_has_the_form_of_agent_skills(file: Path) -> None:
    _, front, body = file.read_text("utf-8").split("---\n", 2)
    about = yaml.safe_load(front)
    known = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert about.keys() <= known
    assert about["name"] == file.parent.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", about["name"])
    assert len(about["name"]) <= 64
    assert 0 < len(about["description"]) <= 1024
    assert len(about["compatibility"]) <= 500
    assert 0 < len(body.splitlines()) < 500


def test_the_plugin_brings_the_server_and_the_skill() -> None:
    assert SKILLS
    plugin = read(PLUGIN / ".claude-plugin" / "plugin.json")
    assert plugin["version"] == __version__
    (entry,) = plugin["mcpServers"].values()
    assert entry == {"command": "oh-jupyter", "args": ["mcp"]}
    marketplace = read(ROOT / ".claude-plugin" / "marketplace.json")
    (listed,) = marketplace["plugins"]
    assert (ROOT / listed["source"]).resolve() == PLUGIN
    assert listed["name"] == plugin["name"]
    assert listed["description"] == plugin["description"]


def test_the_manifests_of_other_clients_are_generated() -> None:
    subprocess.run(
        [sys.executable, str(ROOT / "scripts/plugin-manifests"), "--check"], check=True, timeout=60
    )
    plugin = read(PLUGIN / ".claude-plugin" / "plugin.json")
    codex = read(PLUGIN / ".codex-plugin" / "plugin.json")
    portable = read(PLUGIN / "plugin.json")
    assert codex["version"] == portable["version"] == __version__
    assert [(PLUGIN / codex[part]).exists() for part in ("skills", "mcpServers")] == [True, True]
    servers = read(PLUGIN / codex["mcpServers"])["mcpServers"]
    assert servers == {
        name: {"type": "stdio", **each} for name, each in plugin["mcpServers"].items()
    }
    (listed,) = read(ROOT / ".agents/plugins/marketplace.json")["plugins"]
    assert (ROOT / listed["source"]["path"]).resolve() == PLUGIN
    # Agent Plugins allows no other fields.
    about = {"name", "version", "description", "author", "license", "keywords"}
    assert portable.keys() == {"$schema", *about}


def test_the_registry_entry_describes_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    server = read(ROOT / "server.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 0 < len(server["description"]) <= 100
    assert 0 < len(server["title"]) <= 100
    assert server["version"] == __version__
    (package,) = server["packages"]
    assert package["registryType"] == "pypi"
    assert package["identifier"].replace("-", "_") == "oh_jupyter"
    assert package["version"] == __version__
    assert package["transport"] == {"type": "stdio"}
    # How PyPI's page shows that the package is this server.
    assert f"mcp-name: {server['name']}" in (ROOT / "README.md").read_text("utf-8")
    first, *named = package["packageArguments"]
    with pytest.raises(SystemExit):
        main([first["value"], "--help"])
    help_text = capsys.readouterr().out
    assert all(argument["name"] in help_text for argument in named)
    assert all(variable["name"] in help_text for variable in package["environmentVariables"])
