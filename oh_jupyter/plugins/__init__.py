"""Parts of the runtime that are loaded by requirement name."""

from oh_jupyter.cells import CellOutput, CellRunner
from oh_jupyter.plugins.base import Plugin, PluginRequirement
from oh_jupyter.plugins.jupyter import JupyterPlugin, JupyterRequirement
from oh_jupyter.plugins.registry import (
    ALL_PLUGINS,
    ENTRY_POINT_GROUP,
    AgentSkillsPlugin,
    AgentSkillsRequirement,
    make_plugins,
)
from oh_jupyter.plugins.vscode import VSCodePlugin, VSCodeRequirement

__all__ = [
    "ALL_PLUGINS",
    "ENTRY_POINT_GROUP",
    "AgentSkillsPlugin",
    "AgentSkillsRequirement",
    "CellOutput",
    "CellRunner",
    "JupyterPlugin",
    "JupyterRequirement",
    "Plugin",
    "PluginRequirement",
    "VSCodePlugin",
    "VSCodeRequirement",
    "make_plugins",
]
