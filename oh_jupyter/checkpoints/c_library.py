"""Functions of the C library that Python does not offer."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from typing import Any


def call(function: str, *arguments: Any) -> int:
    """Call a function of the C library; raise OSError if it fails."""
    try:
        result = int(getattr(c_library(), function)(*arguments))
    except AttributeError:
        raise OSError(errno.ENOSYS, f"no {function} on this system") from None
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


@functools.cache
def c_library() -> ctypes.CDLL:
    """Return the C library of this process."""
    return ctypes.CDLL(None, use_errno=True)
