"""Policy of an administrator: capabilities that are forced on or off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oh_jupyter.errors import ConfigError, PolicyError
from oh_jupyter.text import did_you_mean

VARIABLE = "OH_JUPYTER_POLICY"
"""Environment variable whose entries take precedence over those of other sources."""

SWITCHES = ("on", "off")
NETWORKS = {"off": "none", "listed": "listed", "ask": "ask", "on": "host"}
"""Values of the setting sandbox_network by the policy's values for ``network``."""
KERNEL_NETWORKS = {"off": ("none",), "listed": ("none", "listed"), "ask": ("none", "listed")}
"""Networks of a sandboxed kernel that the policy's values for ``network`` allow, smallest first."""
CAPABILITIES: dict[str, tuple[str, ...] | None] = {
    "browser": SWITCHES,
    "shell": SWITCHES,
    "network": tuple(NETWORKS),
    "approvals_over_rest": SWITCHES,
    "agents": None,
    "plugins": None,
}
"""Values of each capability; None for on, off, or the allowed names, separated by commas."""


def check_policy(policy: Mapping[str, str], where: str) -> None:
    """Raise ConfigError for an unknown capability or value."""
    for name, value in policy.items():
        if name not in CAPABILITIES:
            known = f"{did_you_mean(name, CAPABILITIES)}Capabilities: {', '.join(CAPABILITIES)}"
            raise ConfigError(f"{where} has an unknown capability {name!r}. {known}")
        values = CAPABILITIES[name]
        if values is not None and value not in values:
            raise ConfigError(
                f"{where} must have one of {', '.join(values)} for {name}, not {value!r}"
            )


def forced_values(policy: Mapping[str, str], plugins: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that a policy forces, by field name.

    Args:
        policy: The policy.
        plugins: The plugins that are wanted.
    """
    forced: dict[str, Any] = {}
    if "browser" in policy:
        forced["enable_browser"] = policy["browser"] == "on"
    if "network" in policy:
        forced["sandbox_network"] = NETWORKS[policy["network"]]
        if policy["network"] != "on":  # without a sandbox, nothing limits the network
            forced["sandbox"] = "required"
    if policy.get("plugins", "on") != "on":
        forced["plugins"] = tuple(name for name in plugins if _allows(policy["plugins"], name))
    return forced


def restricting_entries(policy: Mapping[str, str]) -> dict[str, str]:
    """Return the entries that only restrict, whatever an operator has set."""
    return {
        name: value
        for name, value in policy.items()
        if value == "off" or (CAPABILITIES.get(name, SWITCHES) is None and value != "on")
    }


def refusal(policy: Mapping[str, str], capability: str, name: str = "") -> str:
    """Return why a capability, or one of its names, is switched off or limited, else "".

    Args:
        policy: The policy.
        capability: One of CAPABILITIES.
        name: The agent or plugin.
    """
    value = policy.get(capability, "on")
    if value == "on" or (value != "off" and name and _allows(value, name)):
        return ""
    if value == "off":
        limit = f"has switched off {capability}"
    elif name:
        limit = f"does not allow {name}"
    else:
        limit = f"limits {capability}"
    return f"The administrator {limit} (policy: {capability}={value})."


def restrictions(policy: Mapping[str, str]) -> list[dict[str, str]]:
    """Return what a policy switches off or limits: capability, value and reason of each."""
    return [
        {"capability": name, "value": value, "reason": reason}
        for name, value in policy.items()
        if (reason := refusal(policy, name))
    ]


def check_allowed(policy: Mapping[str, str], capability: str, name: str = "") -> None:
    """Raise PolicyError if a capability, or one of its names, is not available."""
    reason = refusal(policy, capability, name)
    if reason:
        raise PolicyError(f"{reason} Ask them if you need it.")


def check_cells(policy: Mapping[str, str], kernel_network: str) -> None:
    """Raise PolicyError if agents' cells would have a network that the policy does not allow.

    Args:
        policy: The policy.
        kernel_network: Network of the kernel's sandbox, "" for a kernel outside of one.
    """
    value = policy.get("network", "on")
    allowed = KERNEL_NETWORKS.get(value)
    if allowed is None or kernel_network in allowed:
        return
    raise PolicyError(
        f"The administrator limits the network (policy: network={value}), and cells of this kernel "
        "have all of it. Agents run cells only in a sandboxed kernel: choose Python 3 (sandboxed), "
        "which oh-jupyter sandbox install adds, or use commands."
    )


def kernel_network(policy: Mapping[str, str], wanted: str) -> str:
    """Return the network of a sandboxed kernel: the wanted one, or the largest that is allowed."""
    allowed = KERNEL_NETWORKS.get(policy.get("network", "on"))
    return wanted if allowed is None or wanted in allowed else allowed[-1]


def check_change(policy: Mapping[str, str], setting: str, value: Any) -> None:
    """Raise PolicyError for a change of a setting that a policy forces."""
    if setting == "policy":
        raise PolicyError(
            f"The policy cannot be changed in a running kernel. Set {VARIABLE} before it starts."
        )
    plugins = tuple(value) if setting == "plugins" and value is not None else ()
    forced = forced_values(policy, plugins)
    if setting in forced and value not in (None, forced[setting]):
        raise PolicyError(
            f"The administrator's policy sets {setting} to {forced[setting]!r}, not {value!r}."
        )


def _allows(value: str, name: str) -> bool:
    return name in [word.strip() for word in value.split(",")]
