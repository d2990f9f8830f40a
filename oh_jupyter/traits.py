"""The settings as traits: ``c.OhJupyter.<name>`` in kernel and server alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from traitlets import (
    Bool,
    Dict,
    Enum,
    Float,
    HasTraits,
    Int,
    List,
    TraitError,
    TraitType,
    Unicode,
    validate,
)
from traitlets.config import Configurable

from oh_jupyter.config import Settings, load_settings
from oh_jupyter.errors import OhJupyterError


def _trait(hint: Any, help: str, choices: tuple[str, ...]) -> TraitType[Any, Any]:
    """The trait of a field: None means that it was not set here."""
    optional: dict[str, Any] = {"allow_none": True, "default_value": None, "help": help}
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = get_origin(options[0]) or options[0]
    traits: dict[Any, Any] = {
        bool: Bool,
        int: Int,
        float: Float,
        tuple: List,
        dict: Dict,
        str: Unicode,
    }
    trait: TraitType[Any, Any] = Enum(choices, **optional) if choices else traits[kind](**optional)
    return trait.tag(config=True)


def _namespace() -> dict[str, Any]:
    hints = get_type_hints(Settings)
    return {
        setting.name: _trait(hints[setting.name], _help(setting), setting.metadata["choices"])
        for setting in fields(Settings)
    }


def _help(setting: Any) -> str:
    default = setting.default if setting.default is not MISSING else None
    variables = ", ".join(setting.metadata["variables"])
    also = f" Also by the environment: {variables}." if variables else ""
    return f"{setting.metadata['help']} Default: {default!r}.{also}"


# Made from the fields, so that a setting is described in one place only.
SettingsTraits: type[HasTraits] = type("SettingsTraits", (HasTraits,), _namespace())
"""A mixin with one trait for each field of ``Settings``."""


class _KernelTraits(SettingsTraits, Configurable):  # type: ignore[valid-type, misc]
    """Settings of oh_jupyter in this kernel."""

    check: Callable[[str, Any], None] = staticmethod(lambda name, value: None)
    """Raises an OhJupyterError for a value that cannot be used; set by who loads them."""

    @validate(*Settings.__dataclass_fields__)
    def _usable(self, proposal: Any) -> Any:
        try:
            self.check(proposal["trait"].name, proposal["value"])
        except OhJupyterError as problem:
            raise TraitError(str(problem)) from None
        return proposal["value"]


# Traitlets takes the section of a config file from the class's name.
KernelTraits: type[Configurable] = type("OhJupyter", (_KernelTraits,), {"__module__": __name__})
"""The Configurable that a kernel makes of ``c.OhJupyter``."""


def explicit_settings(traits: HasTraits) -> dict[str, Any]:
    """The values of the traits that were set, by field name."""
    values = {setting.name: getattr(traits, setting.name) for setting in fields(Settings)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if value is not None
    }


def settings_from_traits(traits: HasTraits) -> Settings:
    """All settings, those of the traits first; a ConfigError if a value cannot be used."""
    return load_settings(explicit_settings(traits))


def show_settings(traits: HasTraits, settings: Settings) -> None:
    """Have the traits show what is set, wherever it was given; secrets and passwords left out."""
    for setting in fields(Settings):
        value = getattr(settings, setting.name)
        has_password = isinstance(value, str) and "://" in value and "@" in value
        if not setting.metadata["secret"] and not has_password:
            setattr(traits, setting.name, list(value) if isinstance(value, tuple) else value)
