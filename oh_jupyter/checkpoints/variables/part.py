"""Parts of an object's content: functions that read, compare and restore them."""

from __future__ import annotations

import datetime
import decimal
import fractions
import operator
import pathlib
import re
import types
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal


class _Missing:
    """Stands for a variable or an attribute that does not exist."""


MISSING: Any = _Missing

ATOMS = frozenset(
    {
        *(int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented)),
        *(
            range,
            slice,
            object,
            types.CodeType,
            types.MemberDescriptorType,
            types.WrapperDescriptorType,
        ),
        *(types.MethodDescriptorType, types.ClassMethodDescriptorType),
        *(types.GetSetDescriptorType, types.MemberDescriptorType, types.GenericAlias),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(decimal.Decimal, fractions.Fraction, re.Pattern, re.Match, uuid.UUID, types.UnionType),
        *(pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath),
        *(weakref.ref, weakref.ProxyType, weakref.CallableProxyType),
    }
)
"""Types whose objects neither change nor refer to objects that change."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False)
class Part:
    """Functions for one part of an object's content.

    Attributes:
        read: Returns the content, which may share data with the object.
        write: Restores a content in the object.
        same: Returns whether two contents are the same.
        children: Returns the objects that a content refers to.
        own: Returns an independent copy of a content that shares data.
        seal: Returns a form of a content that can only be compared.
        size: Returns the bytes that ``own`` copies.
        held: Returns the bytes that a content alone holds, given the current content.
        fits: Returns whether a content can be restored in the object itself.
        remake: Returns a new object with a content that does not fit.
        stored: How an object with this part is stored: as an empty object and its ``content``, as
            the ``whole`` content, or ``by value`` as it is when it is stored.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any, Any], object]
    same: Callable[[Any, Any], bool]
    children: Callable[[Any], Iterable[Any]] = tuple
    own: Callable[[Any], Any] = _as_it_is
    seal: Callable[[Any], Any] = _as_it_is
    size: Callable[[Any], int] = lambda value: 0
    held: Callable[[Any, Any], int] | None = None
    fits: Callable[[Any, Any], bool] = lambda thing, value: True
    remake: Callable[[Any, Any], Any] | None = None
    stored: Literal["content", "whole", "by value"] = "content"

    @property
    def is_shared(self) -> bool:
        """Whether the content shares data with the object."""
        return self.own is not _as_it_is


def same_items(one: Any, other: Any) -> bool:
    """Return whether two sequences hold the same objects."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def same_pairs(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    """Return whether two mappings hold the same objects in the same order."""
    return same_items(one, other) and all(map(operator.is_, one.values(), other.values()))


def unchanging(read: Callable[[Any], Iterable[Any]]) -> Part:
    """Return the part of an object of which only the children can change."""
    return Part(read, lambda it, value: None, lambda one, other: True, stored="by value")


def _attributes(thing: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = object.__getattribute__(thing, "__dict__")
    return attributes


def _write_attributes(thing: Any, value: dict[str, Any]) -> None:
    attributes = _attributes(thing)
    attributes.clear()
    attributes.update(value)


ATTRIBUTES = Part(
    lambda it: dict(_attributes(it)),
    _write_attributes,
    same_pairs,
    lambda value: value.values(),
)
