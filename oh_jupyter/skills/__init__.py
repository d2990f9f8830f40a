"""Agent skills: plain functions that an agent's cells can call.

``from oh_jupyter.skills.agentskills import *`` imports the available ones.
"""

from oh_jupyter.skills.calling import call_skill
from oh_jupyter.skills.catalog import (
    Skill,
    SkillFolder,
    add,
    available,
    documentation,
    find,
    on_change,
    register,
    registry,
    remove,
    schema,
    skill_folders,
)

__all__ = [
    "Skill",
    "SkillFolder",
    "add",
    "available",
    "call_skill",
    "documentation",
    "find",
    "on_change",
    "register",
    "registry",
    "remove",
    "schema",
    "skill_folders",
]
