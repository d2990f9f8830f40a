"""The kernel's end of the control channel: remote procedure calls, and events on IOPub.

``channel`` is all that a kernel needs before the first request; the rest comes with it.
"""

from oh_jupyter.kernel.control.channel import ControlChannel

__all__ = ["ControlChannel"]
