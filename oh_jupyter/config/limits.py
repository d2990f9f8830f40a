"""Settings that limit agents, and which of their changes allow agents more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from oh_jupyter.config.settings import Settings

IsWider = Callable[[Any, Any], bool]
"""Whether a new value (second) allows agents more than the previous one."""


def _ordered(*values: object, default: object = None) -> IsWider:
    """Compare values by their rank, the widest one first; ``default`` stands for None."""

    def rank(value: object) -> int:
        return values.index(default if value is None else value)

    return lambda old, new: rank(new) < rank(old)


def _grows(old: Sequence[str] | None, new: Sequence[str] | None) -> bool:
    return not set(new or ()) <= set(old or ())


def _shrinks(old: Sequence[str] | None, new: Sequence[str] | None) -> bool:
    return not set(old or ()) <= set(new or ())


def _opens(old: Sequence[str] | None, new: Sequence[str] | None) -> bool:
    """Compare lists of allowed things, of which an empty one allows everything."""
    return bool(old) and (not new or _grows(old, new))


def _rises(old: float | None, new: float | None) -> bool:
    """Compare maximums, of which None means no maximum."""
    return old is not None and (new is None or new > old)


def _differs(old: Any, new: Any) -> bool:
    return bool(old != new)


_WIDER: Mapping[str, IsWider] = {
    "confirmation": _ordered("never", "risky", "always", default="risky"),
    "untrusted_text": _ordered(False, True),
    "sandbox": _ordered("off", "auto", "required"),
    "sandbox_network": _ordered("host", "ask", "listed", "none"),
    "sandbox_hosts": _grows,
    "sandbox_writable": _grows,
    "sandbox_visible": _grows,
    "sandbox_hidden": _shrinks,
    "sandbox_max_processes": _rises,
    "max_memory_gb": _rises,
    "max_upload_mb": _rises,
    "browser_allowed_origins": _opens,
    "browser_blocked_origins": _shrinks,
    "enable_browser": _ordered(True, False),
    "policy": _differs,
    "mcp_servers": _differs,
    "agents": _differs,
    "agent_directories": _differs,
    "agent_registry": _differs,
    "username": _differs,
    "workspace_dir": _differs,
    "plugins": _grows,
    "file_store_web_hook_url": _differs,
}
"""The settings that limit agents."""


def is_wider(name: str, old: Any, new: Any) -> bool:
    """Return whether a change of a setting allows agents more; unknown values do not count."""
    compare = _WIDER.get(name)
    try:
        return compare is not None and compare(old, new)
    except (ValueError, TypeError):  # an invalid value, which is rejected elsewhere
        return False


def tightens(name: str, value: Any) -> bool:
    """Return whether a value of a limiting setting allows agents no more than its default."""
    default = Settings.__dataclass_fields__[name].default
    return name in _WIDER and not is_wider(name, default, value)


def narrowed(settings: Settings, limits: Settings) -> tuple[Settings, list[str]]:
    """Return settings that are nowhere wider than the limits, and the names of those that were."""
    wider = [
        name for name in _WIDER if is_wider(name, getattr(limits, name), getattr(settings, name))
    ]
    return replace(settings, **{name: getattr(limits, name) for name in wider}), wider
