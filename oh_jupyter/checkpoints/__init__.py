"""The workspace at a moment, and back to it."""

from oh_jupyter.checkpoints.checkpoints import Checkpoint, Checkpoints
from oh_jupyter.checkpoints.rewind import PathChange, RewindPlan
from oh_jupyter.checkpoints.snapshot import Limits

__all__ = ["Checkpoint", "Checkpoints", "Limits", "PathChange", "RewindPlan"]
