"""The settings as traits: ``c.OhJupyter.<name>`` in kernel and server."""

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
from traitlets.config import Config, Configurable

from oh_jupyter.config import Settings, load_settings
from oh_jupyter.errors import OhJupyterError
from oh_jupyter.text import did_you_mean
from oh_jupyter.trust import is_trusted


def _trait(hint: Any, help: str, choices: tuple[str, ...]) -> TraitType[Any, Any]:
    """Return the trait of a field; its value None means not set."""
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
    default = setting.default
    shown = "" if default is None or default is MISSING else f" Default: {default!r}."
    variables = ", ".join(setting.metadata["variables"])
    also = f" Environment: {variables}." if variables else ""
    return f"{setting.metadata['help']}{shown}{also}"


# Generated, so that each setting is described only once.
SettingsTraits: type[HasTraits] = type("SettingsTraits", (HasTraits,), _namespace())
"""A mixin with one trait for each field of ``Settings``."""


class KnownNames(Configurable):
    """A Configurable that refuses names in its section that are no settings; traitlets warns."""

    def _load_config(
        self,
        cfg: Config,
        section_names: list[str] | None = None,
        traits: dict[str, TraitType[Any, Any]] | None = None,
    ) -> None:
        section = type(self).__name__
        known = self.traits(config=True)
        for name in cfg.get(section, {}):
            if name not in known and not name[:1].isupper():  # else another section
                raise TraitError(
                    f"There is no setting c.{section}.{name}. {did_you_mean(name, known)}".rstrip()
                )
        super()._load_config(cfg, section_names, traits)


class _KernelTraits(SettingsTraits, KnownNames):  # type: ignore[valid-type, misc]
    """Settings of oh_jupyter in this kernel."""

    check: Callable[[str, Any], None] = staticmethod(lambda name, value: None)
    """Raises an OhJupyterError for an invalid value; set by the extension."""

    @validate(*Settings.__dataclass_fields__)
    def _usable(self, proposal: Any) -> Any:
        try:
            self.check(proposal["trait"].name, proposal["value"])
        except OhJupyterError as error:
            raise TraitError(str(error)) from None
        return proposal["value"]


# The class name is the section of a config file.
KernelTraits: type[Configurable] = type("OhJupyter", (_KernelTraits,), {"__module__": __name__})
"""The Configurable of a kernel for ``c.OhJupyter``."""


def explicit_settings(traits: HasTraits) -> dict[str, Any]:
    """Return the values of the traits that are set, by field name."""
    values = {setting.name: getattr(traits, setting.name) for setting in fields(Settings)}
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if value is not None
    }


def settings_from_traits(traits: HasTraits) -> Settings:
    """Return all settings, those of the traits first, or raise ConfigError."""
    return load_settings(explicit_settings(traits), is_trusted=is_trusted)


def show_settings(traits: HasTraits, settings: Settings) -> None:
    """Copy all settings to the traits, except secrets and passwords."""
    for setting in fields(Settings):
        value = getattr(settings, setting.name)
        has_password = isinstance(value, str) and "://" in value and "@" in value
        if not setting.metadata["secret"] and not has_password:
            setattr(traits, setting.name, list(value) if isinstance(value, tuple) else value)
