"""Plugins of one runtime, started once and in order; each may fail on its own."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from oh_jupyter.errors import PluginError

if TYPE_CHECKING:
    from oh_jupyter.plugins import JupyterPlugin, Plugin

logger = logging.getLogger(__name__)


class PluginSet:
    """Plugins by name in start order, and the errors of those that did not start."""

    def __init__(self, plugins: Mapping[str, Plugin], start_timeout_seconds: float) -> None:
        self._plugins = dict(plugins)
        self._start_timeout_seconds = start_timeout_seconds
        self._started = False
        self._starting = asyncio.Lock()
        self.problems: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """Names of the plugins that have not failed."""
        return list(self._plugins)

    async def start(self) -> None:
        """Start the plugins once; report those that fail and continue with the others."""
        async with self._starting:
            if self._started:
                return
            self._started = True
            for name, plugin in list(self._plugins.items()):
                try:
                    async with asyncio.timeout(self._start_timeout_seconds):
                        await plugin.initialize(getpass.getuser())
                except TimeoutError:
                    self._drop(name, f"it was not ready after {self._start_timeout_seconds} s")
                except Exception as error:
                    self._drop(name, str(error))
            await self._queue_skills_cell()

    def _drop(self, name: str, reason: str) -> None:
        logger.warning("Plugin %s did not start: %s", name, reason)
        self.problems[name] = reason
        del self._plugins[name]

    async def _queue_skills_cell(self) -> None:
        from oh_jupyter.plugins import AgentSkillsPlugin, JupyterPlugin

        jupyter = self._plugins.get(JupyterPlugin.name)
        if AgentSkillsPlugin.name in self._plugins and isinstance(jupyter, JupyterPlugin):
            await jupyter.queue_startup(AgentSkillsPlugin.cell_code)

    def jupyter(self) -> JupyterPlugin:
        """Return the plugin that runs cells; raise PluginError if it is not running."""
        from oh_jupyter.plugins import JupyterPlugin

        plugin = self._plugins.get(JupyterPlugin.name)
        if not isinstance(plugin, JupyterPlugin):
            reason = self.problems.get(JupyterPlugin.name, "it is not among the settings' plugins")
            raise PluginError(f"Cells cannot run: plugin 'jupyter' is not loaded: {reason}")
        return plugin

    def peek(self, max_lines: int = 3) -> str:
        """Return the last output lines of the running cell, or ""."""
        from oh_jupyter.plugins import JupyterPlugin

        plugin = self._plugins.get(JupyterPlugin.name)
        return plugin.peek(max_lines) if isinstance(plugin, JupyterPlugin) else ""

    async def find(self, name: str) -> Plugin | None:
        """Return a plugin, started if necessary, or None if it is missing or did not start."""
        if name in self._plugins:
            await self.start()
        return self._plugins.get(name)

    async def set_env(self, variables: Mapping[str, str]) -> None:
        """Set environment variables in a kernel that a plugin started."""
        if "jupyter" in self._plugins:
            await self.jupyter().set_env(variables)

    async def close(self) -> None:
        """Stop all plugins."""
        for name, plugin in self._plugins.items():
            try:
                await plugin.close()
            except Exception as error:
                logger.warning("Plugin %s did not stop: %s", name, error)
