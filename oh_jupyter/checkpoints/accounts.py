"""One account of changes that several processes have recorded, each in its own steps.

Two processes that watch a workspace look at it at different moments: one sees a file twice, where
the other sees only what remains. The account of a single process is in itself consistent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from oh_jupyter.checkpoints.disk import State
from oh_jupyter.checkpoints.steps import Step, Write


def one_account(writes: Sequence[Write], steps: Mapping[int, Step], own: str) -> list[Write]:
    """Leave out what other processes have recorded as well.

    Args:
        writes: Writes in the order of time.
        steps: Their steps by number.
        own: Token of the process whose account is preferred, which has just looked.
    """
    by_path: defaultdict[str, list[int]] = defaultdict(list)
    for number, write in enumerate(writes):
        by_path[write.path].append(number)
    repeated: set[int] = set()
    for numbers in by_path.values():
        if len({writes[number].recorder for number in numbers}) > 1:
            path_writes = [writes[number] for number in numbers]
            if _is_complete(path_writes, own):
                repeated |= {number for number in numbers if writes[number].recorder != own}
            else:
                repeated |= {numbers[index] for index in _repeated(path_writes, steps)}
    return [write for number, write in enumerate(writes) if number not in repeated]


def _is_complete(writes: Sequence[Write], own: str) -> bool:
    """Return whether a process knows all that others do: what agents changed, and what people did.

    What it has seen at once may hide what an agent and a person did one after the other.
    """
    mine = [write for write in writes if write.recorder == own]
    theirs = [write for write in writes if write.recorder != own]
    known = {write.new for write in mine}
    return (
        bool(mine)
        and mine[0].old == writes[0].old
        and writes[-1].new in known
        and _knows_agents(mine, theirs)
        and all(write.new in known for write in theirs if write.author != "agent")
        and all(write.author != "rewind" for write in theirs)
    )


def _knows_agents(mine: Sequence[Write], theirs: Sequence[Write]) -> bool:
    """Return whether an account is of agents only, or has each agent's step of the other one.

    In the second case, it must not take an agent's change for that of somebody else.
    """
    my_agents = [write for write in mine if write.author == "agent"]
    their_agents = [write for write in theirs if write.author == "agent"]
    if len(my_agents) == len(mine):
        return True
    if not {write.step for write in their_agents} <= {write.step for write in my_agents}:
        return False
    not_agents = {write.new for write in mine if write.author != "agent"}
    return not_agents.isdisjoint(write.new for write in their_agents)


def _repeated(writes: Sequence[Write], steps: Mapping[int, Step]) -> set[int]:
    """Return the indices of the accounts of a step that end in the same state as another one.

    It is the later one, or that which the step's own process has not recorded, if one begins later.
    """
    accounts: defaultdict[int, defaultdict[str, list[int]]]
    accounts = defaultdict(lambda: defaultdict(list))
    for index, write in enumerate(writes):
        if write.author == "agent" and write.step:
            accounts[write.step][write.recorder].append(index)
    repeated: set[int] = set()
    for step, by_recorder in accounts.items():
        owner = steps[step].owner if step in steps else ""
        chosen: dict[State | None, list[int]] = {}
        for indices in sorted(by_recorder.values(), key=lambda account: account[-1]):
            begin, end = writes[indices[0]], writes[indices[-1]]
            other = chosen.setdefault(end.new, indices)
            if other is indices:
                continue
            if begin.recorder == owner and begin.old != writes[other[0]].old:
                chosen[end.new], indices = indices, other
            repeated.update(indices)
    return repeated
