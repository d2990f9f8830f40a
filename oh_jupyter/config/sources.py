"""The sources of the settings' values.

In order of precedence: explicit values (traits, arguments), environment variables, the ``[core]``
table of an OpenHands ``config.toml``, defaults. A file that only lies in the working directory
limits agents further, or needs a person's trust; see ``oh_jupyter.config.folder``. The traits are
in ``oh_jupyter.traits``, so that nothing below the kernel needs traitlets.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from oh_jupyter.config.folder import (
    FILE_NAME,
    IsTrusted,
    SettingsFile,
    read_settings_file,
)
from oh_jupyter.config.limits import tightens
from oh_jupyter.config.settings import (
    Settings,
    check_name,
    check_value,
    secret_variables,
)
from oh_jupyter.errors import ConfigError
from oh_jupyter.policy import forced_values, restricting_entries
from oh_jupyter.text import nearest_name
from oh_jupyter.trace_context import lasting_environment


def parse_setting(value: Any, hint: Any, where: str, example: str) -> Any:
    """Convert a value of TOML, or the text of a variable, to the type of its field.

    Args:
        value: The value.
        hint: Annotation of the field.
        where: Source of the value, for the error.
        example: A valid mapping, for the error.

    Raises:
        ConfigError: The value does not fit the type.
    """
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = options[0]
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _truth(value)
        if kind is float:
            return float(value)
        if kind is int:
            return int(value)
        if kind == tuple[dict[str, Any], ...]:
            tables = json.loads(value) if isinstance(value, str) else value
            return tuple(dict(table) for table in tables)
        if get_origin(kind) is tuple:
            return tuple(value.split(",") if isinstance(value, str) else value)
        if get_origin(kind) is dict:
            parsed = _literal(value, where, example) if isinstance(value, str) else value
            return {str(name): str(text) for name, text in parsed.items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(f"{where} has an invalid value: {error}") from error
    if not isinstance(value, str):
        raise ConfigError(f"{where} must be a string, not {value!r}")
    return value


def _literal(text: str, where: str, example: str) -> dict[str, Any]:
    """Parse a mapping, as JSON or as a Python literal like OpenHands; the text may be secret."""
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    raise ConfigError(
        f"{where} must be a mapping of names to strings, as JSON or a Python literal such as "
        f"{example}"
    )


def _truth(text: str) -> bool:
    lowered = str(text).strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


PREFIX = "OH_JUPYTER_"
"""Beginning of the names of our environment variables."""

CONFIG_FILE_VARIABLE = f"{PREFIX}CONFIG_FILE"
"""Environment variable with the operator's TOML file."""

MIN_RESEMBLANCE = 0.8
"""Ratio of difflib above which a name of others' counts as a misspelled setting."""

BOXED_KERNEL_VARIABLE = "OH_JUPYTER_BOXED_KERNEL"
"""Environment variable with the network of a kernel that is in a sandbox as a whole."""

SESSION_KEY_VARIABLE = "SESSION_API_KEY"
"""Environment variable with the key of clients of OpenHands' protocol."""


def state_home() -> Path:
    """Return the directory of a user's state, which may not exist yet."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path(os.path.expanduser("~"), ".local", "state")
    return home / "oh_jupyter"


def load_settings(
    explicit: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
    is_trusted: IsTrusted = lambda file: False,
) -> Settings:
    """Collect the settings from all sources.

    Args:
        explicit: Values with the highest precedence, by field name.
        environ: Environment variables; the process's own by default.
        config_file: An OpenHands TOML file; by default ``$OH_JUPYTER_CONFIG_FILE``, else
            ``config.toml`` in the working directory. Of the latter, only settings that limit agents
            further hold until a person trusts it.
        is_trusted: Returns whether a person trusts that file as it is now, such as
            ``oh_jupyter.trust.is_trusted``; by default nobody does.

    Returns:
        The settings.

    Raises:
        ConfigError: A value is invalid, or a setting does not exist; the message names its source.
    """
    settings, faults = read_settings(
        explicit, environ=environ, config_file=config_file, is_trusted=is_trusted
    )
    if faults:
        raise faults[0]
    return settings


def read_settings(
    explicit: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
    is_trusted: IsTrusted = lambda file: False,
) -> tuple[Settings, list[ConfigError]]:
    """Return the settings of ``load_settings`` without invalid values, and the errors of these."""
    environ = os.environ if environ is None else environ
    for name in explicit or {}:
        check_name(name)
    values, faults = _values_of_file(config_file or environ.get(CONFIG_FILE_VARIABLE), is_trusted)
    folder_policy = values.pop("policy", None) or {}
    sources = [
        (name, environ[variable], f"environment variable {variable}")
        for name, setting in Settings.__dataclass_fields__.items()
        for variable in setting.metadata["variables"]
        if environ.get(variable)
    ]
    parsed, invalid = _parsed(sources)
    values.update(parsed)
    faults += [*_misspelled_variables(environ), *invalid]
    policy = values.get("policy") or {}
    for name, value in (explicit or {}).items():
        check_value(name, value)
        values[name] = value
    policy = {**folder_policy, **(values.get("policy") or {}), **policy}
    if policy:
        values["policy"] = policy
    settings = Settings(**values)
    return replace(settings, **forced_values(policy, settings.plugins)), faults


def folder_settings(
    folder: str = ".", *, is_trusted: IsTrusted
) -> tuple[SettingsFile, dict[str, Any]]:
    """Return the settings file of a folder, and its settings that need a person's trust to hold.

    Raises:
        ConfigError: There is no such file, it cannot be read, or it is not used, because the
            operator names another one.
    """
    if named := os.environ.get(CONFIG_FILE_VARIABLE):
        raise ConfigError(f"{CONFIG_FILE_VARIABLE} names {named}, so no folder's file is used")
    path = Path(folder, FILE_NAME)
    try:
        file = read_settings_file(path, Settings.__dataclass_fields__)
    except FileNotFoundError:
        where = os.path.abspath(folder)
        raise ConfigError(f"There is no {FILE_NAME} in {where}. Name its folder") from None
    trusted = is_trusted(file)
    held, _ = _of_folder(file, trusted)
    values = {} if trusted else file.values
    return file, {
        name: value
        for name, value in values.items()
        if name not in held or (name == "policy" and held[name] != value)
    }


def faults_of(file: SettingsFile) -> list[ConfigError]:
    """Return the errors of invalid values and misspelled names in a file."""
    return _of_operator(file)[1]


def _values_of_file(
    chosen: str | os.PathLike[str] | None, is_trusted: IsTrusted
) -> tuple[dict[str, Any], list[ConfigError]]:
    """Return the settings that hold of the operator's file, or else of the working directory's."""
    try:
        path = Path(chosen or FILE_NAME).expanduser()
        file = read_settings_file(path, Settings.__dataclass_fields__)
    except FileNotFoundError:
        return {}, [ConfigError(f"There is no config file {chosen}")] if chosen else []
    except ConfigError as error:
        return {}, [error] if chosen else []
    return _of_operator(file) if chosen else _of_folder(file, is_trusted(file))


def _of_operator(file: SettingsFile) -> tuple[dict[str, Any], list[ConfigError]]:
    values, faults = _parsed((name, value, _in(file, name)) for name, value in file.values.items())
    for name in file.unknown:  # OpenHands has settings of its own there
        nearest = nearest_name(name, Settings.__dataclass_fields__, MIN_RESEMBLANCE)
        if nearest:
            faults.append(ConfigError(f"{_in(file, name)} does not exist. Did you mean {nearest}?"))
    return values, faults


def _of_folder(file: SettingsFile, trusted: bool) -> tuple[dict[str, Any], list[ConfigError]]:
    """Return a folder's settings that hold; a policy only restricts, even if it is trusted."""
    values, faults = _of_operator(file)
    held = {
        name: restricting_entries(value) if name == "policy" else value
        for name, value in values.items()
        if trusted or name == "policy" or tightens(name, value)
    }
    return held, faults if trusted else []


def _in(file: SettingsFile, name: str) -> str:
    return f"[core] {name} in {file.path}"


def _parsed(
    sources: Iterable[tuple[str, Any, str]],
) -> tuple[dict[str, Any], list[ConfigError]]:
    """Return the valid ones of some values by name, and the errors of the others."""
    hints = get_type_hints(Settings)
    values: dict[str, Any] = {}
    faults: list[ConfigError] = []
    for name, value, where in sources:
        example = Settings.__dataclass_fields__[name].metadata["example"]
        try:
            parsed = parse_setting(value, hints[name], where, example)
            check_value(name, parsed, where)
        except ConfigError as error:
            faults.append(error)
        else:
            values[name] = parsed
    return values, faults


def _misspelled_variables(environ: Mapping[str, str]) -> list[ConfigError]:
    """Return the errors of environment variables with almost the name of a setting's."""
    known = {variable for each in fields(Settings) for variable in each.metadata["variables"]}
    ours = {name.removeprefix(PREFIX): f"{name}?" for name in known if name.startswith(PREFIX)}
    others = {
        each.name.upper(): f"{(*each.metadata['variables'], f'c.OhJupyter.{each.name}')[0]}?"
        for each in fields(Settings)
    }
    choices = {**others, **ours}
    faults = []
    for variable in environ:
        name = variable.removeprefix(PREFIX)
        if name != variable and variable not in {*known, CONFIG_FILE_VARIABLE}:
            nearest = nearest_name(name, choices, MIN_RESEMBLANCE)
            if nearest:
                error = f"The environment variable {variable} sets nothing."
                faults.append(ConfigError(f"{error} Did you mean {choices[nearest]}"))
    return faults


def environment_without_secrets() -> dict[str, str]:
    """Return our environment without the operator's secrets; agents' own keys stay."""
    withheld = {SESSION_KEY_VARIABLE, *secret_variables()}
    return {name: value for name, value in lasting_environment().items() if name not in withheld}
