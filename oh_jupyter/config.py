"""What an operator sets, as plain data: ``Settings`` and where its values come from.

In order of precedence: explicit values (traits, arguments), environment variables, the
``[core]`` table of an OpenHands ``config.toml``, defaults. The traits themselves are in
``oh_jupyter.traits``, so that nothing below the kernel needs traitlets.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from oh_jupyter.errors import ConfigError
from oh_jupyter.messages import (
    DECISION_MESSAGE,
    EVENT_MESSAGE,
    KERNEL_INFO_FIELD,
    RECEIVED_MESSAGE,
    REPLY_MESSAGE,
    REQUEST_MESSAGE,
    SILENT_FIELD,
    TURN_MESSAGE,
)

__all__ = [
    "DECISION_MESSAGE",
    "EVENT_MESSAGE",
    "KERNEL_INFO_FIELD",
    "OUTPUT_LIMIT",
    "RECEIVED_MESSAGE",
    "REPLY_MESSAGE",
    "REQUEST_MESSAGE",
    "SESSION_KEY_VARIABLE",
    "SILENT_FIELD",
    "TURN_MESSAGE",
    "Settings",
    "check_choice",
    "load_settings",
    "read_settings",
    "secret_variables",
    "state_home",
]

OUTPUT_LIMIT = 30_000
"""Characters that an Observation holds of a cell's output; of a shell's it is as many."""

SESSION_KEY_VARIABLE = "SESSION_API_KEY"
"""Environment variable of the key that clients of OpenHands' protocol send."""


def _setting(
    default: Any,
    help: str,
    *variables: str,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    example: str = "",
) -> Any:
    metadata = {
        "help": help,
        "variables": variables,
        "secret": secret,
        "choices": choices,
        "example": example,
    }
    return field(default=default, repr=not secret, metadata=metadata)


def state_home() -> Path:
    """Folder of what is kept for a user, which need not exist."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = Path(state) if os.path.isabs(state) else Path(os.path.expanduser("~"), ".local", "state")
    return home / "oh_jupyter"


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
    shell_kernel_python: bool = _setting(
        True,
        "Whether the directory of the kernel's Python comes first on the shell's PATH, so that "
        "python and pip are the kernel's there, too.",
        "OH_JUPYTER_SHELL_KERNEL_PYTHON",
    )
    server_url_file: str | None = _setting(
        None,
        "File into which the server writes an address below which agents' browsers can view "
        "files; OpenHands' agents look into /tmp/oh-server-url.",
        "OH_JUPYTER_SERVER_URL_FILE",
    )
    enable_browser: bool = _setting(True, "Whether browser actions may start a browser.")
    browser_path: str | None = _setting(
        None,
        "Chromium, Chrome or Edge to use. When not set, it is looked for.",
        "OH_JUPYTER_BROWSER",
    )
    browser_headless: bool = _setting(True, "Run the browser without a window.")
    browser_allowed_origins: tuple[str, ...] = _setting(
        (),
        "The only origins that the browser may reach, such as https://*.example.org; all if empty.",
        "OH_JUPYTER_BROWSER_ALLOWED_ORIGINS",
    )
    browser_blocked_origins: tuple[str, ...] = _setting(
        (),
        "Origins that the browser may not reach.",
        "OH_JUPYTER_BROWSER_BLOCKED_ORIGINS",
    )
    browser_storage_state: str | None = _setting(
        None,
        "File of cookies and local storage that a browser begins with, to be logged in.",
        "OH_JUPYTER_BROWSER_STORAGE_STATE",
    )
    browser_profile: str | None = _setting(
        None, "Folder of a browser profile that is kept.", "OH_JUPYTER_BROWSER_PROFILE"
    )
    browser_device: str | None = _setting(
        None, "Device to be, from Playwright's list, such as iPhone 15."
    )
    browser_har: str | None = _setting(
        None,
        "File to record all requests of a browser in when it closes, secrets too: ….har, or ….zip.",
        "OH_JUPYTER_BROWSER_HAR",
    )
    browser_video: str | None = _setting(
        None,
        "File for a video of what a browser shows, ….webm; files that are there are kept.",
        "OH_JUPYTER_BROWSER_VIDEO",
    )
    browser_idle_seconds: float = _setting(
        0.0,
        "Seconds without an action after which a browser is closed until the next one, which finds "
        "its tabs, cookies and local storage again; 0 for never.",
    )
    browser_freeze_seconds: float = _setting(
        0.0,
        "Seconds without an action or a watcher after which the pages of a headless browser stand "
        "still, as on a machine that sleeps, until the next one; 0 for never.",
    )
    browser_cdp_url: str | None = _setting(
        None,
        "DevTools address of a running browser to use instead of starting one.",
        "OH_JUPYTER_BROWSER_CDP_URL",
    )
    browsergym_eval_env: str | None = _setting(
        None,
        "Task that the browser is in evaluation mode for, such as browsergym/miniwob.click-test.",
        "BROWSERGYM_EVAL_ENV",
    )
    no_change_timeout_seconds: float = _setting(
        10.0,
        "Seconds without new output after which a running command is reported as such.",
        "NO_CHANGE_TIMEOUT_SECONDS",
    )
    cell_output_limit: int = _setting(
        OUTPUT_LIMIT,
        "Characters of text that the Observation of a cell holds, as of a command; of more it "
        "has the beginning and the end, and says how much is left out.",
        "OH_JUPYTER_CELL_OUTPUT_LIMIT",
    )
    max_inline_chars: int = _setting(
        1024 * 1024,
        "Characters of a text that an event's own file holds; a longer one, such as the content "
        "of a file that was written, is a file of its own that the event refers to.",
        "OH_JUPYTER_MAX_INLINE_CHARS",
    )
    init_plugin_timeout: float = _setting(
        120.0, "Seconds that a plugin may take to start.", "INIT_PLUGIN_TIMEOUT"
    )
    confirmation: str | None = _setting(
        None,
        "Which actions of an agent wait for a person: never, risky or always. When not set, "
        "never in the server's default kernel, risky in a kernel that a person started. Running a "
        "notebook's cell is an action like any other; edits of a notebook's cells, which execute "
        "nothing, do not wait. It is no sandbox: an agent's code that runs can do what it wants.",
        "OH_JUPYTER_CONFIRMATION",
        choices=("never", "risky", "always"),
    )
    confirmation_timeout: float = _setting(
        300.0, "Seconds after which an action that nobody has confirmed is rejected."
    )
    checkpoints: str = _setting(
        "auto",
        "Whether the workspace is kept as it is when an agent's turn begins and ends, so that "
        "%oh_rewind can go back: auto or off. It needs git; what .gitignore excludes is not kept.",
        "OH_JUPYTER_CHECKPOINTS",
        choices=("auto", "off"),
    )
    checkpoint_pause: float = _setting(
        60.0,
        "Seconds without an Action after which the next Action of an agent begins a new turn.",
    )
    agents: dict[str, str] | None = _setting(  # noqa: RUF009
        None,
        "Agents of your own for %oh_agent, by name: the command line of each, which speaks the "
        "Agent Client Protocol on its standard input and output; as JSON.",
        "OH_JUPYTER_AGENTS",
        example='{"mine": "my-agent --acp"}',
    )
    agent_start_timeout: float = _setting(
        60.0,
        "Seconds in which an agent must have started a session.",
        "OH_JUPYTER_AGENT_START_TIMEOUT",
    )
    max_upload_mb: float = _setting(
        4096.0, "Size that an upload may have, in MiB, and that a zip file may unpack to."
    )
    draft_model: str | None = _setting(
        None,
        "Model that merges draft edits where the merge is in doubt, by the name that its "
        "endpoint knows; needs the extra draft.",
        "OH_JUPYTER_DRAFT_MODEL",
    )
    draft_base_url: str | None = _setting(
        None,
        "Endpoint of that model, with OpenAI's chat API; $OPENAI_BASE_URL when not set.",
        "OH_JUPYTER_DRAFT_BASE_URL",
    )
    draft_api_key: str = _setting(
        "",
        "Key of that endpoint; $OPENAI_API_KEY when not set. Secret: never logged.",
        "OH_JUPYTER_DRAFT_API_KEY",
        secret=True,
    )
    draft_correct_num: int = _setting(
        5,
        "How often that model may correct what it broke before its edit is dropped.",
        "OH_JUPYTER_DRAFT_CORRECT_NUM",
    )
    editor_history_limit: int = _setting(
        100, "Edits of each file that can be undone.", "OH_JUPYTER_EDITOR_HISTORY_LIMIT"
    )
    editor_history_mb: float = _setting(
        256.0,
        "Size in MiB of the edit history of a workspace; above it the oldest edits go first.",
        "OH_JUPYTER_EDITOR_HISTORY_MB",
    )
    enable_auto_lint: bool = _setting(
        False, "Whether edits report what they broke.", "ENABLE_AUTO_LINT"
    )
    plugins: tuple[str, ...] = _setting(
        ("agent_skills", "jupyter"), "Plugins to load, by requirement name."
    )
    vscode_path: str | None = _setting(
        None,
        "openvscode-server or code-server for the plugin vscode; looked for on the PATH "
        "when not set.",
        "OH_JUPYTER_VSCODE",
    )
    vscode_base_url: str | None = _setting(
        None,
        "Where browsers find the Jupyter server, such as /user/ann/, for that plugin; the "
        "server tells its default kernel.",
        "OH_JUPYTER_VSCODE_BASE_URL",
    )
    kernel_url: str | None = _setting(
        None,
        "Jupyter server or Kernel Gateway for cells, where the runtime lives in no kernel.",
        "OH_JUPYTER_KERNEL_URL",
    )
    kernel_token: str = _setting(
        "", "Token of that server. Secret: never logged.", "OH_JUPYTER_KERNEL_TOKEN", secret=True
    )
    mcp_servers: tuple[dict[str, Any], ...] = _setting(
        (),
        "MCP servers to run behind the runtime: name, command, args, env of each. In a "
        "config.toml these are the stdio_servers of [mcp]. Secret: never logged.",
        "OH_JUPYTER_MCP_SERVERS",
        secret=True,
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
        secret=True,
        example='{"Authorization": "Bearer …"}',
    )
    file_store_web_hook_batch: bool = _setting(
        False, "Report changes in batches.", "FILE_STORE_WEB_HOOK_BATCH"
    )
    file_store_web_hook_outbox: str | None = _setting(
        None,
        "Directory or SQLite file that keeps reports until they are accepted; one in the "
        "user's state directory when not set, none if empty.",
        "FILE_STORE_WEB_HOOK_OUTBOX",
    )
    file_store_web_hook_secret: str | None = _setting(
        None,
        "Secret that signs the reports by the Standard Webhooks scheme (whsec_...); several, "
        "with spaces between them, while it is being changed. Secret: never logged.",
        "FILE_STORE_WEB_HOOK_SECRET",
        secret=True,
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
    settings, faults = read_settings(explicit, environ=environ, config_file=config_file)
    if faults:
        raise faults[0]
    return settings


def read_settings(
    explicit: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    config_file: str | os.PathLike[str] | None = None,
) -> tuple[Settings, list[ConfigError]]:
    """The settings as ``load_settings`` has them, without those values that cannot be used."""
    environ = os.environ if environ is None else environ
    settings = Settings.__dataclass_fields__
    hints = get_type_hints(Settings)
    values: dict[str, Any] = {}
    faults: list[ConfigError] = []
    given: list[tuple[str, Any, str]] = []
    try:
        given += _from_toml(config_file, environ)
    except ConfigError as problem:
        faults.append(problem)
    for name, setting in settings.items():
        for variable in setting.metadata["variables"]:
            if environ.get(variable):
                given.append((name, environ[variable], f"environment variable {variable}"))
    for name, value, where in given:
        try:
            parsed = _parsed(value, hints[name], where, settings[name].metadata["example"])
            check_choice(name, parsed, where)
        except ConfigError as problem:
            faults.append(problem)
        else:
            values[name] = parsed
    for name, value in (explicit or {}).items():
        if name not in hints:
            raise ConfigError(f"There is no setting {name!r}. Settings: {', '.join(hints)}")
        check_choice(name, value)
        values[name] = value
    return Settings(**values), faults


def check_choice(name: str, value: Any, where: str = "") -> None:
    """Refuse a value that is none of a setting's choices, if it has some (ConfigError)."""
    choices = Settings.__dataclass_fields__[name].metadata["choices"]
    if choices and value is not None and value not in choices:
        where = where or f"The setting {name}"
        raise ConfigError(f"{where} must be one of {', '.join(choices)}, not {value!r}")


def secret_variables() -> set[str]:
    """Names of the environment variables that set what is secret."""
    secret = (setting.metadata for setting in fields(Settings) if setting.metadata["secret"])
    return {variable for metadata in secret for variable in metadata["variables"]}


def environment_without_secrets() -> dict[str, str]:
    """Our environment without what is the operator's secret; an agent's own keys are in it."""
    withheld = {SESSION_KEY_VARIABLE, *secret_variables()}
    return {name: value for name, value in os.environ.items() if name not in withheld}


def _from_toml(
    path: str | os.PathLike[str] | None, environ: Mapping[str, str]
) -> list[tuple[str, Any, str]]:
    """Names, values and places of what is ours; other keys belong to OpenHands."""
    chosen = path or environ.get("OH_JUPYTER_CONFIG_FILE")
    source = Path(chosen or "config.toml").expanduser()
    try:
        text = source.read_text(encoding="utf-8")
        import tomllib

        table = tomllib.loads(text)
    except FileNotFoundError:
        if chosen:
            raise ConfigError(f"There is no config file {source}") from None
        return []
    except (ValueError, OSError) as problem:  # no TOML, no UTF-8, no file
        if chosen:
            raise ConfigError(f"Config file {source} cannot be read: {problem}") from problem
        return []
    core = dict(table.get("core", {}))
    servers = table.get("mcp", {}).get("stdio_servers")
    if servers is not None:
        core["mcp_servers"] = servers
    hints = get_type_hints(Settings)
    return [
        (name, value, f"[core] {name} in {source}") for name, value in core.items() if name in hints
    ]


def _parsed(value: Any, hint: Any, where: str, example: str) -> Any:
    """A value as the field wants it, from TOML or from a variable's text."""
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
    except (ValueError, TypeError, AttributeError) as problem:
        raise ConfigError(f"{where} has an unusable value: {problem}") from problem
    if not isinstance(value, str):
        raise ConfigError(f"{where} must be a string, not {value!r}")
    return value


def _literal(text: str, where: str, example: str) -> dict[str, Any]:
    """A mapping as JSON, or as a Python literal as OpenHands reads it; its text may be secret."""
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    raise ConfigError(
        f"{where} must be a mapping of names to texts, as JSON or as a Python literal such as "
        f"{example}"
    )


def _truth(text: str) -> bool:
    lowered = str(text).strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"0", "false", "no", "off", ""}:
        return False
    raise ValueError(f"{text!r} is neither true nor false")
