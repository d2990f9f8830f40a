"""Agent skills: plain functions that an agent's cells can call.

``from oh_jupyter.skills.agentskills import *`` brings in those that are available.
"""

from oh_jupyter.skills.catalog import Skill, available, documentation, register, registry

__all__ = ["Skill", "available", "documentation", "register", "registry"]
