"""The launcher of servers under its former name."""

from oh_jupyter.testing.server import TOKEN, LiveServer
from oh_jupyter.testing.server import run_server as live_server

__all__ = ["TOKEN", "LiveServer", "live_server"]
