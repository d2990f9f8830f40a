"""The magics, one module each."""

from oh_jupyter.kernel.magics.agent import AgentMagics
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.browse import BrowseMagics
from oh_jupyter.kernel.magics.edit import EditMagics
from oh_jupyter.kernel.magics.log import ConfirmMagics, LogMagics
from oh_jupyter.kernel.magics.replay import ReplayMagics
from oh_jupyter.kernel.magics.run import RunMagics
from oh_jupyter.kernel.magics.skills import SkillsMagics
from oh_jupyter.kernel.magics.store import StoreMagics

__all__ = ["MAGICS"]

MAGICS: tuple[type[OhMagics], ...] = (
    RunMagics,
    EditMagics,
    BrowseMagics,
    StoreMagics,
    SkillsMagics,
    LogMagics,
    ReplayMagics,
    ConfirmMagics,
    AgentMagics,
)
"""Every magics class that ``%load_ext oh_jupyter`` registers."""
