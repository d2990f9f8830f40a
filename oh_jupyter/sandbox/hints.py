"""Hints for commands that fail because of the sandbox."""

from __future__ import annotations

import os
import re

NO_NETWORK = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|Network is unreachable|getaddrinfo|No address associated with hostname"
    r"|nodename nor servname|Failed to resolve|ENOTFOUND|EAI_AGAIN"
)
READ_ONLY = re.compile(r"Read-only file system|EROFS|\[Errno 30\]")

NO_NETWORK_HINT = (
    "This command ran in a sandbox without network. If it needs one, ask the user to run it, or to "
    "set sandbox_network = 'ask'."
)
NO_PROXY_HINT = (
    "This command ran in a sandbox whose only network is the proxy in HTTPS_PROXY. The program "
    "does not use it: find its option for a proxy, or use another program."
)
READ_ONLY_HINT = (
    "This command ran in a sandbox that can write the workspace and /tmp only, and no files of "
    "git, editors and environments that run programs. Ask the user to run it, or to add the path "
    "to sandbox_writable."
)


HIDDEN_HINT = (
    "This command ran in a sandbox, which sees only programs, caches and the workspace of the home "
    "directory. If it needs another file there, ask the user to add it to sandbox_visible."
)


def hint(output: str, network: str) -> str:
    """Return a sentence about the probable reason of a failure, or ""."""
    if network != "host" and NO_NETWORK.search(output):
        return NO_NETWORK_HINT if network == "none" else NO_PROXY_HINT
    if READ_ONLY.search(output):
        return READ_ONLY_HINT
    is_of_home = os.path.expanduser("~") in output and "No such file or directory" in output
    return HIDDEN_HINT if is_of_home else ""
