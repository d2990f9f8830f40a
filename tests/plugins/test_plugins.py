"""Plugins by name and in order; what fails is named."""

from __future__ import annotations

import pytest

from oh_jupyter.errors import PluginError
from oh_jupyter.plugins import (
    ALL_PLUGINS,
    AgentSkillsRequirement,
    JupyterPlugin,
    JupyterRequirement,
    make_plugins,
)


def test_requirements_name_their_plugins() -> None:
    assert AgentSkillsRequirement().name in ALL_PLUGINS
    assert JupyterRequirement().name in ALL_PLUGINS
    assert "search_dir(" in AgentSkillsRequirement().documentation


def test_skills_start_before_jupyter_however_they_are_asked_for() -> None:
    assert list(make_plugins(["jupyter", "agent_skills", "jupyter"])) == ["agent_skills", "jupyter"]


def test_a_plugin_that_is_ready_is_taken() -> None:
    ready = JupyterPlugin()
    assert make_plugins(["jupyter"], {"jupyter": ready})["jupyter"] is ready


def test_unknown_plugins_are_refused() -> None:
    with pytest.raises(PluginError, match=r"no plugin 'telepathy'.*agent_skills, jupyter"):
        make_plugins(["telepathy"])
