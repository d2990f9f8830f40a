"""The objects behind variables and their contents, read at one moment."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from oh_jupyter.checkpoints.variables.limits import Budget, NotKeptError
from oh_jupyter.checkpoints.variables.part import ATOMS, Part
from oh_jupyter.checkpoints.variables.python_objects import class_parts
from oh_jupyter.checkpoints.variables.reach import Namespace, Reach, code_reach
from oh_jupyter.checkpoints.variables.state import parts_of


class State(NamedTuple):
    """An object with the content that it had at one moment."""

    thing: Any
    parts: tuple[Part, ...]
    values: tuple[Any, ...]

    def is_same(self, values: tuple[Any, ...]) -> bool:
        """Return whether another content of this object is the same."""
        compared = zip(self.parts, self.values, values, strict=True)
        return all(part.same(one, other) for part, one, other in compared)

    def now(self) -> tuple[Any, ...]:
        """Read the current content, which may share data with the object."""
        return tuple(part.read(self.thing) for part in self.parts)

    def owned(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return an independent copy of a content."""
        return tuple(part.own(value) for part, value in zip(self.parts, values, strict=True))

    def sealed(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a form of a content that can only be compared."""
        return tuple(part.seal(value) for part, value in zip(self.parts, values, strict=True))

    def size(self) -> int:
        """Return the size of the copies in bytes."""
        return sum(part.size(value) for part, value in zip(self.parts, self.values, strict=True))

    def held(self, now: tuple[Any, ...]) -> int:
        """Return the size of the data that only this content holds, in bytes."""
        return sum(
            part.size(value) if part.held is None else part.held(value, current)
            for part, value, current in zip(self.parts, self.values, now, strict=True)
        )

    def fits(self) -> bool:
        """Return whether the content can be restored in the object itself."""
        contents = zip(self.parts, self.values, strict=True)
        return all(part.fits(self.thing, value) for part, value in contents)

    def restore(self) -> None:
        """Restore the content; raise NotKeptError if that fails."""
        try:
            for part, value in zip(self.parts, self.values, strict=True):
                part.write(self.thing, value)
        except Exception as error:  # types may fail in any way
            raise NotKeptError(f"restoring it failed: {error}") from None

    def remade(self) -> Any:
        """Return a new object with the content of a part that does not fit."""
        contents = list(zip(self.parts, self.values, strict=True))
        part, value = next(each for each in contents if not each[0].fits(self.thing, each[1]))
        assert part.remake is not None
        thing = part.remake(self.thing, value)
        for other, content in contents:
            if other is not part:
                other.write(thing, content)
        return thing


CONTAINERS: dict[type, tuple[Part, ...]] = {kind: class_parts(kind) for kind in (list, dict, set)}
"""Types that are read and compared without detours, because most objects have them."""


HOLDERS_SECONDS = 0.02
"""How long a cell waits for a search for variables that hold what it changed."""


@dataclass
class Walk:
    """Contents of all objects that some variables reach.

    Attributes:
        namespace: The variables.
        is_ours: Returns whether a module by this name is the notebook or in the workspace.
        budget: Maximum cost.
        states: Contents by the identity of the object.
        edges: Identities of the children by that of their parent, if it has any.
        roots: Identities of the values of the variables that were reached.
        reasons: Why an object was not kept, by its identity; ``unkept`` has the object.
        skipped: Why a variable was not kept at all, by its name.
    """

    namespace: Namespace
    is_ours: Callable[[str], bool]
    budget: Budget
    states: dict[int, State] = field(default_factory=dict)
    edges: dict[int, list[int]] = field(default_factory=dict)
    roots: dict[str, int] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._deadline = time.thread_time() + self.budget.seconds
        self._pending: list[str] = []
        self._seen_names: set[str] = set()
        self.unkept: dict[int, Any] = {}
        self._shared: list[int] = []
        self._bad_classes: dict[type, str] = {}

    def follow(self, reach: Reach, *, copies: bool = True) -> None:
        """Read the objects that some code may change, and copy the data that they share."""
        self._add(reach)
        while self._pending:
            name = self._pending.pop()
            if name in self.namespace.variables:
                self._follow_name(name, self.namespace.variables[name])
        if copies:
            self._copy_data()

    def _add(self, reach: Reach) -> None:
        names = self.namespace.own() if reach.is_everything else reach.names
        new = [name for name in sorted(names, reverse=True) if name not in self._seen_names]
        self._seen_names.update(new)
        self._pending += new

    def _follow_name(self, name: str, value: Any) -> None:
        added: list[int] = []
        try:
            self._follow(value, added)
            self.roots[name] = id(value)
        except NotKeptError as error:
            self.skipped[name] = str(error)
            for key in added:
                self.states.pop(key, None)
                self.edges.pop(key, None)

    def _follow(self, value: Any, added: list[int]) -> None:
        self._check_limits()
        stack = [value]
        while stack:
            thing = stack.pop()
            key = id(thing)
            if key in self.states or key in self.reasons or thing is self.namespace.variables:
                continue
            added.append(key)
            if not len(added) % 256:
                self._check_limits()
            container: Any = CONTAINERS.get(type(thing))
            if container is not None:  # most objects
                value = container[0].read(thing)
                children = [
                    each for each in container[0].children(value) if type(each) not in ATOMS
                ]
                self.states[key] = State(thing, container, (value,))
            else:
                try:
                    self.states[key], children = self._read(thing)
                except NotKeptError as error:
                    self.unkept[key] = thing
                    self.reasons[key] = str(error)
                    continue
                if any(part.is_shared for part in self.states[key].parts):
                    self._shared.append(key)
            if children:
                self.edges[key] = list(map(id, children))
                stack += children

    def _check_limits(self) -> None:
        if time.thread_time() > self._deadline:
            raise NotKeptError("the variables of this cell took too long to read")
        if len(self.states) > self.budget.objects:
            raise NotKeptError(f"the cell reaches more than {self.budget.objects:,} objects")

    def _read(self, thing: Any) -> tuple[State, list[Any]]:
        cls = type(thing)
        if cls in self._bad_classes:
            raise NotKeptError(self._bad_classes[cls])
        start = time.monotonic()
        try:
            parts = parts_of(thing, self.is_ours)
            values = tuple(part.read(thing) for part in parts)
            inner = [
                child
                for part, value in zip(parts, values, strict=True)
                for child in part.children(value)
                if type(child) not in ATOMS
            ]
        except Exception as error:
            reason = (
                str(error) if isinstance(error, NotKeptError) else f"reading it failed: {error}"
            )
            if time.monotonic() - start > 0.1:
                self._bad_classes[cls] = reason
            raise NotKeptError(reason) from None
        if self.is_ours(str(cls.__module__)):
            inner.append(cls)  # its methods may run
        if cls is FunctionType:
            inner += self._follow_code(thing)
        elif isinstance(thing, type) and parts:
            inner += thing.__bases__
        return State(thing, parts, values), inner

    def _follow_code(self, function: FunctionType) -> list[Any]:
        """Add the variables of a notebook's function; return the module of another one."""
        if function.__globals__ is self.namespace.variables:
            self._add(code_reach(function.__code__))
            return []
        name = str(function.__module__)
        module = sys.modules.get(name)
        if module is None or name == "__main__" or not self.is_ours(name):
            return []
        if code_reach(function.__code__).is_everything:
            self._add(code_reach(function.__code__))
        return [module]

    def _copy_data(self) -> None:
        """Copy data that the objects share with their contents, the smallest first."""
        left = self.budget.size_bytes
        shared = [key for key in self._shared if key in self.states]
        for size, key in sorted((self.states[key].size(), key) for key in shared):
            state = self.states[key]
            left -= size
            if left >= 0:
                self.states[key] = state._replace(values=state.owned(state.values))
                continue
            self.unkept[key] = self.states.pop(key).thing
            self.reasons[key] = f"{size:,} bytes exceed the memory for variables"

    def add_holders(self, names: Mapping[str, Any], keys: Collection[int]) -> None:
        """Add the variables out of reach that hold some objects, as far as that is quick.

        Args:
            names: All variables, whose objects are still as they were, except for those in reach.
            keys: Identities of the objects.
        """
        self._deadline = time.thread_time() + HOLDERS_SECONDS
        self._shared = []
        roots: dict[str, int] = {}
        for name, value in names.items():
            if name in self.roots or name in self.skipped or type(value) in ATOMS:
                continue
            if id(value) in keys or self._follow_holder(value):
                roots[name] = id(value)
        self._pending.clear()  # code that a variable has is not what it holds
        holders = self._holders(keys)
        roots = {name: key for name, key in roots.items() if key in holders}
        self.roots |= roots
        if roots:
            reached = self._reached(roots.values())
            self._shared = [key for key in self._shared if key in reached]
            self._copy_data()

    def _follow_holder(self, value: Any) -> bool:
        """Read the objects of a variable out of reach; return False if that takes too long."""
        added: list[int] = []
        try:
            self._follow(value, added)
        except NotKeptError:
            for key in added:
                self.states.pop(key, None)
                self.edges.pop(key, None)
            return False
        return True

    def _holders(self, keys: Collection[int]) -> set[int]:
        """Return the objects that reach some objects, and these."""
        parents: dict[int, list[int]] = {}
        for parent, children in self.edges.items():
            for child in children:
                parents.setdefault(child, []).append(parent)
        return _closure(keys, parents)

    def _reached(self, roots: Iterable[int]) -> set[int]:
        """Return the objects that some objects reach, and these."""
        return _closure(roots, self.edges)

    def names_of(self, keys: Collection[int], *, through_code: bool = True) -> dict[str, set[int]]:
        """Return the variables that reach some objects, with the objects that each reaches.

        Without ``through_code``, classes and modules do not count as parts of their objects.
        """
        if not keys:
            return {}
        reached: dict[str, set[int]] = {}
        for name, root in self.roots.items():
            seen, stack = {root}, [root]
            while stack:
                new = [each for each in self.edges.get(stack.pop(), ()) if each not in seen]
                if not through_code:
                    new = [each for each in new if not self._is_code(each)]
                seen.update(new)
                stack += new
            if inner := seen.intersection(keys):
                reached[name] = inner
        return reached

    def _is_code(self, key: int) -> bool:
        state = self.states.get(key)
        return state is not None and isinstance(state.thing, type | ModuleType)


def _closure(start: Iterable[int], edges: Mapping[int, Iterable[int]]) -> set[int]:
    """Return what can be reached from some nodes of a graph, and these."""
    seen = set(start)
    stack = list(seen)
    while stack:
        new = [each for each in edges.get(stack.pop(), ()) if each not in seen]
        seen.update(new)
        stack += new
    return seen


def runs_user_thread(namespace: Namespace) -> bool:
    """Return whether another thread executes the notebook's code."""
    frames = sys._current_frames()
    frames.pop(threading.get_ident(), None)  # keeping it would keep this call's objects alive
    for frame in frames.values():
        inner: Any = frame
        while inner is not None:
            if inner.f_globals is namespace.variables:
                return True
            inner = inner.f_back
    return False
