"""Actions, Observations, their wire form, and the event log."""

from oh_jupyter.events import action, observation, openhands
from oh_jupyter.events.action import *  # noqa: F403
from oh_jupyter.events.actor import Actor
from oh_jupyter.events.event import Event, EventSource
from oh_jupyter.events.observation import *  # noqa: F403
from oh_jupyter.events.openhands import *  # noqa: F403

__all__ = ["Actor", "Event", "EventSource"]
__all__ += action.__all__
__all__ += observation.__all__
__all__ += openhands.__all__
