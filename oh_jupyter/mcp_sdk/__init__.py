"""The official MCP SDK, in either major version; only this package imports it.

Other packages pin an installation to one of the majors. ``server`` offers tools, ``client`` uses
those of a server, ``json_rpc`` carries messages unchanged. The interface is MCP's JSON as plain
data with both. Importing the SDK takes half a second, so do that where it is first used.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

__all__ = ["major"]


@cache
def major() -> int:
    """Return the major version of the installed SDK, 1 or 2."""
    # Not by its modules: an uninstalled major 2 may leave its types behind.
    return int(version("mcp").partition(".")[0])
