"""Forms: the values for which an agent asks a person."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from oh_jupyter.errors import AnswerError

_YES = ("y", "yes", "true", "on", "1")
_NO = ("n", "no", "false", "off", "0")

FieldType = Literal["string", "number", "integer", "boolean", "array"]
"""Types of JSON schema that a form can have; an array is a choice of several values."""

Value = str | int | float | bool | list[str]


@dataclass(frozen=True)
class Choice:
    """A value that a person can choose, and its title."""

    value: str
    title: str


@dataclass(frozen=True)
class FormField:
    """One value of a form.

    Attributes:
        name: Its name in the agent's schema.
        title: Its title for people.
        type: Its type.
        description: A longer description.
        choices: The values to choose from; empty if any value is possible.
        is_required: Whether the agent needs it.
        default: The value if the person gives none.
        minimum: Smallest number, length of a text, or number of choices.
        maximum: Largest one.
    """

    name: str
    title: str
    type: FieldType
    description: str = ""
    choices: tuple[Choice, ...] = ()
    is_required: bool = False
    default: Value | None = None
    minimum: float | None = None
    maximum: float | None = None

    @property
    def hint(self) -> str:
        """Description of the valid inputs, in brackets; "" if any text is valid."""
        words: list[str] = []
        if self.choices:
            words.append("/".join(choice.value for choice in self.choices))
            words += ["several with commas"] if self.type == "array" else []
        elif self.type == "boolean":
            words.append("y/n")
        elif self.type != "string":
            words.append(self.type)
        if self.default is not None:
            words.append(f"default {_text(self.default)}")
        elif not self.is_required:
            words.append("optional")
        return f" [{'; '.join(words)}]" if words else ""

    def parse(self, value: Any) -> Value | None:
        """Return the value that an input means, or None if it is empty.

        Raises:
            AnswerError: It does not fit the field.
        """
        if isinstance(value, str) and not value.strip():
            value = None
        if value is None:
            if self.default is None and self.is_required:
                raise AnswerError(f"{self.title} is required{self.hint}.")
            return self.default
        parsed = self._parsed(value.strip() if isinstance(value, str) else value)
        if parsed is None:
            raise AnswerError(f"{self.title} cannot be {value!r:.100}{self.hint}.")
        self._check_limits(parsed)
        return parsed

    def _parsed(self, value: Any) -> Value | None:
        match self.type:
            case "array":
                parts = value.split(",") if isinstance(value, str) else value
                if not isinstance(parts, Sequence):
                    return None
                chosen = [self._choice(part) for part in parts]
                return None if None in chosen else [each for each in chosen if each is not None]
            case "boolean":
                text = _text(value).lower()
                return True if text in _YES else False if text in _NO else None
            case "integer" | "number":
                return _number(value, whole=self.type == "integer")
        return self._choice(value) if self.choices else value if isinstance(value, str) else None

    def _choice(self, value: Any) -> str | None:
        """Return the choice with a value or title, or None."""
        text = value.strip() if isinstance(value, str) else None
        for choice in self.choices:
            if text == choice.value:
                return choice.value
        folded = (text or "").lower()
        matches = (each.value for each in self.choices if each.title.lower() == folded)
        return next(matches, None)

    def _check_limits(self, value: Value) -> None:
        size = value if isinstance(value, int | float) else len(value)
        what = {"string": " characters", "array": " choices"}.get(self.type, "")
        if self.minimum is not None and size < self.minimum:
            raise AnswerError(f"{self.title} must be at least {self.minimum:g}{what}.")
        if self.maximum is not None and size > self.maximum:
            raise AnswerError(f"{self.title} must be at most {self.maximum:g}{what}.")


def answers(form: Sequence[FormField], values: Mapping[str, Any]) -> dict[str, Value]:
    """Return the values of a form from a person's inputs, without those that are empty.

    Raises:
        AnswerError: An input does not fit its field, a required one is missing, or there is no
            such field.
    """
    names = [field.name for field in form]
    unknown = [name for name in values if name not in names]
    if unknown:
        raise AnswerError(f"There is no value {unknown[0]!r:.100}. Values: {', '.join(names)}.")
    parsed = {field.name: field.parse(values.get(field.name)) for field in form}
    return {name: value for name, value in parsed.items() if value is not None}


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return int(value) if whole and isinstance(value, str) else _finite(float(value), whole)
    except (ValueError, OverflowError):
        return None


def _finite(number: float, whole: bool) -> int | float | None:
    if not math.isfinite(number) or (whole and not number.is_integer()):
        return None
    return int(number) if whole else number


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(value) if isinstance(value, list) else str(value)
