"""The official MCP SDK, of either major version, and the only place that imports it.

Other packages hold an installation to one major of it, so we work with both: ``server``
offers tools, ``client`` uses those of a server, ``messages`` carries messages
as they are. What they take and give is MCP's JSON as plain data, the same with both.
Importing the SDK takes half a second, so do that where it is first used.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

__all__ = ["major"]


@cache
def major() -> int:
    """Major version of the SDK that is installed, 1 or 2."""
    # A package of major 2 that major 1 has replaced may have left its types behind.
    return int(version("mcp").partition(".")[0])
