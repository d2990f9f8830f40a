"""A sandbox for the processes of a shell: its profile, its engine and its lifecycle."""

from oh_jupyter.sandbox.availability import Engine, find_engine
from oh_jupyter.sandbox.box import Box
from oh_jupyter.sandbox.profile import Profile, allowed_environment, make_profile

__all__ = ["Box", "Engine", "Profile", "allowed_environment", "find_engine", "make_profile"]
