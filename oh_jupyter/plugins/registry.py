"""Plugins by name, and the order in which they start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import ClassVar

from oh_jupyter.errors import PluginError
from oh_jupyter.plugins.base import Plugin, PluginRequirement
from oh_jupyter.plugins.jupyter import JupyterPlugin
from oh_jupyter.plugins.vscode import VSCodePlugin


def _skills_documentation() -> str:
    from oh_jupyter.skills import documentation

    return documentation()


@dataclass(frozen=True)
class AgentSkillsRequirement(PluginRequirement):
    """Requirement of the agent skills, documented by those available."""

    name: str = "agent_skills"
    documentation: str = field(default_factory=_skills_documentation)


class AgentSkillsPlugin(Plugin):
    """Makes the skills available to cells.

    Attributes:
        cell_code: The cell that imports them. Names that the person already uses stay, since the
            kernel is shared, and %who lists the person's names.
    """

    name: ClassVar[str] = "agent_skills"

    cell_code: ClassVar[str] = (
        "import oh_jupyter.skills as _oh_skills\n"
        "for _oh_name, _oh_function in _oh_skills.available().items():\n"
        "    if globals().setdefault(_oh_name, _oh_function) is _oh_function:\n"
        "        get_ipython().user_ns_hidden[_oh_name] = _oh_function\n"
        "del _oh_skills, _oh_name, _oh_function"
    )

    async def initialize(self, username: str) -> None:
        """Do nothing: the executor runs ``cell_code`` once both plugins have started."""


ENTRY_POINT_GROUP = "oh_jupyter.plugins"
"""Entry points of this group name Plugin classes of other packages."""

ALL_PLUGINS: dict[str, type[Plugin]] = {
    plugin.name: plugin for plugin in (AgentSkillsPlugin, JupyterPlugin, VSCodePlugin)
}
"""Plugin classes by requirement name, in the order in which they start."""


def make_plugins(
    names: Iterable[str], ready: Mapping[str, Plugin] | None = None
) -> dict[str, Plugin]:
    """Make the required plugins.

    Args:
        names: Requirement names, in any order.
        ready: Plugins that the caller has already made, used instead of a new one.

    Returns:
        Plugins by name, in the order of ``ALL_PLUGINS``; those of other packages last.

    Raises:
        PluginError: A plugin does not exist or cannot be made.
    """
    wanted = list(dict.fromkeys(names))
    built_in = [name for name in ALL_PLUGINS if name in wanted]
    others = [name for name in wanted if name not in ALL_PLUGINS]
    ready = ready or {}
    return {name: ready.get(name) or _make(name) for name in (*built_in, *others)}


def _make(name: str) -> Plugin:
    plugin_class = ALL_PLUGINS.get(name)
    try:
        if plugin_class is None:
            plugin_class = _from_entry_point(name)
        return plugin_class()
    except PluginError:
        raise
    except Exception as error:
        raise PluginError(f"The plugin {name!r} cannot be loaded: {error}") from error


def _from_entry_point(name: str) -> type[Plugin]:
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=name):
        plugin_class: type[Plugin] = entry.load()
        return plugin_class
    raise PluginError(
        f"There is no plugin {name!r}. Known: {', '.join(ALL_PLUGINS)}; other packages can add "
        f"some by the entry point group {ENTRY_POINT_GROUP!r}"
    )
