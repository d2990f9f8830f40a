"""What an operator sets, as plain data: ``Settings`` and where its values come from.

In order of precedence: explicit values (traits, arguments), environment variables, the
``[core]`` table of an OpenHands ``config.toml``, defaults. The traits themselves are in
``oh_jupyter.traits``, so that nothing below the kernel needs traitlets.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from oh_jupyter.errors import ConfigError

__all__ = ["EVENT_MESSAGE", "REPLY_MESSAGE", "REQUEST_MESSAGE", "Settings", "load_settings"]

REQUEST_MESSAGE = "oh_jupyter_request"
"""Type of the one control-channel request; its content names an operation."""

REPLY_MESSAGE = "oh_jupyter_reply"
"""Type of the reply to it, sent when the operation is done."""

EVENT_MESSAGE = "oh_jupyter_event"
"""Type of the IOPub message that tells every frontend of an Action or Observation."""


def _setting(default: Any, help: str, *variables: str) -> Any:
    return field(default=default, metadata={"help": help, "variables": variables})


@dataclass(frozen=True)
class Settings:
    """Everything that can be set. Each field's help is its documentation.

    ``Settings.__dataclass_fields__[name].metadata`` holds the help and the names of
    the environment variables that set it.
    """

    workspace_dir: str | None = _setting(
        None, "Directory where the shell starts; the kernel's own when not set."
    )
    username: str | None = _setting(
        None,
        "User that the shell runs as; another one than the kernel's needs root.",
        "RUNTIME_USERNAME",
    )
    su_to_user: bool = _setting(
        True, "Whether the shell really changes to that user.", "SU_TO_USER"
    )
    max_memory_gb: float | None = _setting(
        None,
        "Memory that the processes of the shell may use together; more is killed.",
        "RUNTIME_MAX_MEMORY_GB",
    )
    enable_browser: bool = _setting(True, "Whether browser actions may start a browser.")
    browser_path: str | None = _setting(
        None,
        "Chromium, Chrome or Edge to use. When not set, it is looked for.",
        "OH_JUPYTER_BROWSER",
    )
    browser_headless: bool = _setting(True, "Run the browser without a window.")
    no_change_timeout_seconds: float = _setting(
        10.0,
        "Seconds without new output after which a running command is reported as such.",
        "NO_CHANGE_TIMEOUT_SECONDS",
    )
    init_plugin_timeout: float = _setting(
        120.0, "Seconds that a plugin may take to start.", "INIT_PLUGIN_TIMEOUT"
    )
    plugins: tuple[str, ...] = _setting(
        ("agent_skills", "jupyter"), "Plugins to load, by requirement name."
    )
    kernel_url: str | None = _setting(
        None,
        "Jupyter server or Kernel Gateway for cells, where the runtime lives in no kernel.",
        "OH_JUPYTER_KERNEL_URL",
    )
    kernel_token: str = _setting(
        "", "Token of that server. Secret: never logged.", "OH_JUPYTER_KERNEL_TOKEN"
    )
    file_store: str = _setting(
        "local",
        "Kind of file store: local, memory, s3, google_cloud, or an fsspec URL.",
        "FILE_STORE",
    )
    file_store_path: str | None = _setting(
        None,
        "Root of a local store, ~/.openhands when not set; or bucket, or bucket/prefix.",
        "FILE_STORE_PATH",
    )
    file_store_web_hook_url: str | None = _setting(
        None, "Where changes of the store are reported.", "FILE_STORE_WEB_HOOK_URL"
    )
    file_store_web_hook_headers: dict[str, str] | None = _setting(  # noqa: RUF009
        None,
        "Headers of these reports, as JSON. Secret: never logged.",
        "FILE_STORE_WEB_HOOK_HEADERS",
    )
    file_store_web_hook_batch: bool = _setting(
        False, "Report changes in batches.", "FILE_STORE_WEB_HOOK_BATCH"
    )


def load_settings(
    explicit: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> Settings:
    """Gather the settings from where they were given.

    Args:
        explicit: Values that win over all others, by field name.
        environ: Environment variables; the process's own by default.
        config_file: An OpenHands TOML file; by default ``$OH_JUPYTER_CONFIG_FILE``, else
            ``config.toml`` in the working directory if it has a ``[core]`` table.

    Returns:
        The settings.

    Raises:
        ConfigError: A value cannot be used; the message names where it was given.
    """
    environ = os.environ if environ is None else environ
    values = _from_toml(config_file, environ)
    hints = get_type_hints(Settings)
    for setting in fields(Settings):
        for variable in setting.metadata["variables"]:
            if environ.get(variable):
                where = f"environment variable {variable}"
                values[setting.name] = _parsed(environ[variable], hints[setting.name], where)
    for name, value in (explicit or {}).items():
        if name not in hints:
            raise ConfigError(f"There is no setting {name!r}. Settings: {', '.join(hints)}")
        values[name] = value
    return Settings(**values)


def _from_toml(path: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Values of the ``[core]`` table that are ours; other keys belong to OpenHands."""
    chosen = path or environ.get("OH_JUPYTER_CONFIG_FILE")
    source = Path(chosen or "config.toml").expanduser()
    try:
        table = tomllib.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if chosen:
            raise ConfigError(f"There is no config file {source}") from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as problem:
        if chosen:
            raise ConfigError(f"Config file {source} cannot be read: {problem}") from problem
        return {}
    core = table.get("core", {})
    hints = get_type_hints(Settings)
    return {
        name: _parsed(value, hints[name], f"[core] {name} in {source}")
        for name, value in core.items()
        if name in hints
    }


def _parsed(value: Any, hint: Any, where: str) -> Any:
    """A value as the field wants it, from TOML or from a variable's text."""
    options = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kind = options[0]
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _truth(value)
        if kind is float:
            return float(value)
        if get_origin(kind) is tuple:
            return tuple(value.split(",") if isinstance(value, str) else value)
        if get_origin(kind) is dict:
            parsed = json.loads(value) if isinstance(value, str) else value
            return {str(name): str(text) for name, text in parsed.items()}
    except (ValueError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{where} has an unusable value: {problem}") from problem
    if not isinstance(value, str):
        raise ConfigError(f"{where} must be a string, not {value!r}")
    return value


def _truth(text: str) -> bool:
    lowered = str(text).strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")
