"""Needs of 10, 1,000 and 100,000 users or episodes: a simulation with measured parameters.

``python tests/benchmarks/model_scale.py [PARAMETERS.json]`` prints the table of
``docs/explanation/scale.md``. Each resource is a queue with as many servers as there are of it:
actions come by chance at the users' pace, wait for a free server, and hold it for as long as was
measured. The parameters are what ``bench_scale.py`` prints; those of webhooks and browsers come
from ``bench_storage.py`` and ``bench_browser.py``.
"""

from __future__ import annotations

import heapq
import json
import math
import random
import statistics
import sys
from dataclasses import dataclass, replace
from pathlib import Path

USERS = (10, 1_000, 100_000)
MAX_UTILIZATION = 0.7
"""How busy a core, receiver or browser may be so that nobody waits long."""

SIMULATED_ACTIONS = 50_000


@dataclass(frozen=True)
class Parameters:
    """Costs of one of each.

    Attributes:
        seconds_between_actions: How long an agent thinks; the only one that is assumed.
        browser_share: How many of the actions are steps of a browser; assumed, too.
    """

    server_cpu_ms_per_action: float = 2.4
    kernel_cpu_ms_per_action: float = 5.2
    server_mib_without_kernels: float = 55
    kernel_mib: float = 39
    bytes_per_event: float = 2_000
    webhook_ms: float = 0.95
    browser_cpu_ms_per_step: float = 67
    browser_mib: float = 241
    seconds_between_actions: float = 10.0
    browser_share: float = 0.2


def waits_ms(rate: float, service_ms: float, servers: int) -> float:
    """The wait for a free server that 95 of 100 requests do not exceed."""
    dice, now, waits = random.Random(1), 0.0, []
    free = [0.0] * servers
    for _ in range(SIMULATED_ACTIONS):
        now += dice.expovariate(rate)
        begin = max(now, free[0])
        heapq.heapreplace(free, begin + dice.expovariate(1000 / service_ms))
        waits.append(1000 * (begin - now))
    return statistics.quantiles(waits, n=20)[-1]


def servers_needed(rate: float, service_ms: float) -> int:
    """Return the number of servers at which none is busier than allowed."""
    return max(1, math.ceil(rate * service_ms / 1000 / MAX_UTILIZATION))


def row(users: int, parameters: Parameters) -> list[str]:
    """Return the needs of so many active users."""
    actions = users / parameters.seconds_between_actions
    events = 2 * actions
    per_action = parameters.server_cpu_ms_per_action + parameters.kernel_cpu_ms_per_action
    cores = servers_needed(actions, per_action)
    browsing = servers_needed(
        actions * parameters.browser_share, parameters.browser_cpu_ms_per_step
    )
    receivers = servers_needed(events, parameters.webhook_ms)
    memory_mib = users * (
        parameters.server_mib_without_kernels + parameters.kernel_mib + parameters.browser_mib
    )
    one_process = actions * parameters.server_cpu_ms_per_action / 1000
    wait = waits_ms(actions, per_action, cores)
    return [
        f"{users:,}", f"{actions:,.0f}", f"{events:,.0f}",
        f"{events * parameters.bytes_per_event * 86_400 / 1e9:,.1f}",
        f"{cores:,} + {browsing:,}", f"{memory_mib / 1024:,.0f}", f"{100 * one_process:,.0f} %",
        f"{receivers:,}", f"{wait:.0f}",
    ]  # fmt: skip


def main(parameters: Parameters) -> None:
    names = (
        "at work at once", "actions/s", "events and deliveries/s", "GB of events a day",
        "cores for kernels + browsers", "GiB of memory", "of one server process",
        "webhook connections", "95 % wait ms",
    )  # fmt: skip
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    for users in USERS:
        print(f"| {' | '.join(row(users, parameters))} |")


if __name__ == "__main__":
    measured = json.loads(Path(sys.argv[1]).read_text()) if sys.argv[1:] else {}
    known = {name: value for name, value in measured.items() if hasattr(Parameters, name)}
    main(replace(Parameters(), **known))
