"""Checkpoints of a workspace, and the way back to them."""

from oh_jupyter.checkpoints.checkpoints import Checkpoints
from oh_jupyter.checkpoints.journal import Checkpoint
from oh_jupyter.checkpoints.rewind import PathChange, RewindPlan
from oh_jupyter.checkpoints.snapshot import Limits
from oh_jupyter.checkpoints.variables.change import VariableChange

__all__ = [
    "Checkpoint",
    "Checkpoints",
    "Limits",
    "PathChange",
    "RewindPlan",
    "VariableChange",
]
