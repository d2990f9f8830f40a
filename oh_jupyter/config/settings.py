"""The operator's settings as plain data, each with its help, its sources and its range."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from oh_jupyter.errors import ConfigError
from oh_jupyter.policy import check_policy
from oh_jupyter.text import did_you_mean

OUTPUT_LIMIT = 30_000
"""Characters of a cell's or a shell's output in an Observation."""


def _setting(
    default: Any,
    help: str,
    *variables: str,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    above: float | None = None,
    example: str = "",
) -> Any:
    metadata = {
        "help": help,
        "variables": variables,
        "secret": secret,
        "choices": choices,
        "minimum": minimum,
        "above": above,
        "example": example,
    }
    return field(default=default, repr=not secret, metadata=metadata)


@dataclass(frozen=True)
class Settings:
    """All settings.

    ``Settings.__dataclass_fields__[name].metadata`` holds the help text of each field, and the
    names of its environment variables.
    """

    workspace_dir: str | None = _setting(
        None, "Directory where the shell starts. Default: the kernel's working directory."
    )
    username: str | None = _setting(
        None,
        "User of the shell; a different one than the kernel's needs root.",
        "RUNTIME_USERNAME",
    )
    su_to_user: bool = _setting(
        True, "Whether the shell actually switches to that user.", "SU_TO_USER"
    )
    max_memory_gb: float | None = _setting(
        None,
        "Memory limit of all processes of the shell together; they are killed above it.",
        "RUNTIME_MAX_MEMORY_GB",
        above=0,
    )
    shell_kernel_python: bool = _setting(
        True,
        "Whether the shell's PATH starts with the directory of the kernel's Python, so that python "
        "and pip are the kernel's.",
        "OH_JUPYTER_SHELL_KERNEL_PYTHON",
    )
    server_url_file: str | None = _setting(
        None,
        "File in which the server publishes the address where agents' browsers can view files; "
        "OpenHands' agents expect /tmp/oh-server-url.",
        "OH_JUPYTER_SERVER_URL_FILE",
    )
    enable_browser: bool = _setting(
        True,
        "Whether browser actions may start a browser.",
        "OH_JUPYTER_ENABLE_BROWSER",
    )
    browser_path: str | None = _setting(
        None,
        "Chromium, Chrome or Edge to use. Default: one that is installed.",
        "OH_JUPYTER_BROWSER",
    )
    browser_headless: bool = _setting(True, "Run the browser without a window.")
    browser_allowed_origins: tuple[str, ...] = _setting(
        (),
        "Only origins that the browser may access, such as https://*.example.org; all if empty.",
        "OH_JUPYTER_BROWSER_ALLOWED_ORIGINS",
    )
    browser_blocked_origins: tuple[str, ...] = _setting(
        (),
        "Origins that the browser must not access.",
        "OH_JUPYTER_BROWSER_BLOCKED_ORIGINS",
    )
    browser_storage_state: str | None = _setting(
        None,
        "File of cookies and local storage that a browser starts with, to be logged in.",
        "OH_JUPYTER_BROWSER_STORAGE_STATE",
    )
    browser_profile: str | None = _setting(
        None, "Directory of a persistent browser profile.", "OH_JUPYTER_BROWSER_PROFILE"
    )
    browser_device: str | None = _setting(
        None, "Device to emulate, from Playwright's list, such as iPhone 15."
    )
    browser_har: str | None = _setting(
        None,
        "File that records a browser's requests, with secrets, when it closes: ….har or ….zip.",
        "OH_JUPYTER_BROWSER_HAR",
    )
    browser_idle_seconds: float = _setting(
        0.0,
        "Seconds without an action after which a browser is closed until the next one, which "
        "restores its tabs, cookies and local storage; 0 for never.",
        minimum=0,
    )
    browser_cdp_url: str | None = _setting(
        None,
        "DevTools address of a running browser to use instead of starting one.",
        "OH_JUPYTER_BROWSER_CDP_URL",
    )
    browsergym_eval_env: str | None = _setting(
        None,
        "Task for the browser's evaluation mode, such as browsergym/miniwob.click-test.",
        "BROWSERGYM_EVAL_ENV",
    )
    no_change_timeout_seconds: float = _setting(
        10.0,
        "Seconds without new output after which a command is reported as running.",
        "NO_CHANGE_TIMEOUT_SECONDS",
        above=0,
    )
    cell_output_limit: int = _setting(
        OUTPUT_LIMIT,
        "Characters of text in the Observation of a cell or a command; longer output is reduced to "
        "its start and end, with a note about the omitted part.",
        "OH_JUPYTER_CELL_OUTPUT_LIMIT",
        minimum=1,
    )
    max_inline_chars: int = _setting(
        1024 * 1024,
        "Characters of a text in an event's own file; a longer one, such as the content of a "
        "written file, is stored in a separate file.",
        "OH_JUPYTER_MAX_INLINE_CHARS",
        minimum=0,
    )
    init_plugin_timeout: float = _setting(
        120.0,
        "Timeout for the start of a plugin in seconds.",
        "INIT_PLUGIN_TIMEOUT",
        above=0,
    )
    confirmation: str | None = _setting(
        None,
        "Which actions of an agent wait for a person: never, risky or always. Default: never in "
        "the server's default kernel, risky in a kernel that a person started. Running a "
        "notebook's cell is an action, too; edits of a notebook's cells execute nothing and do "
        "not wait. This is not a sandbox: running code of an agent can do anything.",
        "OH_JUPYTER_CONFIRMATION",
        choices=("never", "risky", "always"),
    )
    confirmation_timeout: float = _setting(
        300.0,
        "Seconds after which an unconfirmed action is rejected.",
        "OH_JUPYTER_CONFIRMATION_TIMEOUT",
        minimum=0,
    )
    untrusted_text: bool = _setting(
        True,
        "Whether an agent's action waits for a person, unless confirmation is never, if it sends "
        "data out or reads credentials after the agent has read text of others in the same turn, "
        "such as a web page, which may contain instructions for it.",
        "OH_JUPYTER_UNTRUSTED_TEXT",
    )
    checkpoints: str = _setting(
        "auto",
        "Whether the workspace is saved at the start and end of an agent's turn, so that "
        "%oh_rewind can undo it: auto or off. Needs git; ignored files are not saved.",
        "OH_JUPYTER_CHECKPOINTS",
        choices=("auto", "off"),
    )
    checkpoint_pause: float = _setting(
        60.0,
        "Seconds without an Action after which an agent's next Action starts a new turn; ten "
        "minutes or more for a client that names its session.",
        minimum=0,
    )
    checkpoint_variables: str = _setting(
        "auto",
        "Whether what agents' cells change in the kernel's variables is kept, so that %oh_rewind "
        "can restore it: auto or off. Your own cells are not watched.",
        "OH_JUPYTER_CHECKPOINT_VARIABLES",
        choices=("auto", "off"),
    )
    checkpoint_variables_mb: float = _setting(
        1024.0,
        "Memory for the earlier states of variables in MiB; the oldest are dropped first, and "
        "larger variables are not kept.",
        "OH_JUPYTER_CHECKPOINT_VARIABLES_MB",
        minimum=0,
    )
    checkpoint_variables_disk_mb: float = _setting(
        1024.0,
        "Disk space for the earlier states of a workspace's variables in MiB, which survive a "
        "restart of the kernel; the oldest are dropped first.",
        "OH_JUPYTER_CHECKPOINT_VARIABLES_DISK_MB",
        minimum=0,
    )
    sandbox: str = _setting(
        "off",
        "Whether agents' commands run in a sandbox that keeps its state, apart from your shell: "
        "off, auto (where one can be made), or required (else nothing runs). Cells run in the "
        "kernel's process and are never sandboxed.",
        "OH_JUPYTER_SANDBOX",
        choices=("auto", "required", "off"),
    )
    sandbox_network: str = _setting(
        "none",
        "Network of the sandbox: none; listed for the hosts of sandbox_hosts only; ask, where "
        "another host waits for a person; or host for the machine's, with which risky commands "
        "wait for a person also in the sandbox.",
        "OH_JUPYTER_SANDBOX_NETWORK",
        choices=("none", "listed", "ask", "host"),
    )
    sandbox_hosts: tuple[str, ...] = _setting(
        (),
        "Hosts that the sandbox may reach with listed and ask: names, *.names, addresses and "
        "networks, each with :PORT for others than 80 and 443, and presets such as pypi.",
        "OH_JUPYTER_SANDBOX_HOSTS",
    )
    sandbox_writable: tuple[str, ...] = _setting(
        (),
        "More directories that are writable in the sandbox, relative to the workspace, also "
        "protected ones such as .venv.",
        "OH_JUPYTER_SANDBOX_WRITABLE",
    )
    sandbox_visible: tuple[str, ...] = _setting(
        (),
        "More paths that are visible in the sandbox, read-only, relative to the workspace. Of the "
        "home directory it sees only programs and their caches.",
        "OH_JUPYTER_SANDBOX_VISIBLE",
    )
    sandbox_hidden: tuple[str, ...] = _setting(
        (),
        "More paths that are invisible in the sandbox, relative to the workspace.",
        "OH_JUPYTER_SANDBOX_HIDDEN",
    )
    sandbox_max_processes: int = _setting(
        4096,
        "Maximum number of processes and threads in the sandbox. For the superuser, it holds only "
        "where the kernel can make a cgroup, which most containers do not allow.",
        "OH_JUPYTER_SANDBOX_MAX_PROCESSES",
        minimum=1,
    )
    policy: dict[str, str] | None = _setting(  # noqa: RUF009
        None,
        "Capabilities that an administrator forces on or off, as JSON. The entries of the "
        "variable take precedence. Users cannot change it in a running kernel.",
        "OH_JUPYTER_POLICY",
        example='{"browser": "off", "agents": "claude,codex"}',
    )
    agents: dict[str, str] | None = _setting(  # noqa: RUF009
        None,
        "Your own agents for %oh_agent as JSON: names and command lines of programs that speak the "
        "Agent Client Protocol on standard input and output.",
        "OH_JUPYTER_AGENTS",
        example='{"mine": "my-agent --acp"}',
    )
    agent_directories: tuple[str, ...] = _setting(
        (),
        "Further directories, beside the workspace, in which agents may read and write files with "
        "the Agent Client Protocol. Agents that support it get them with their session.",
        "OH_JUPYTER_AGENT_DIRECTORIES",
    )
    agent_registry: str = _setting(
        "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json",
        "Registry of the Agent Client Protocol whose agents %oh_agent list shows; empty for none. "
        "It is fetched once a day.",
        "OH_JUPYTER_AGENT_REGISTRY",
    )
    agent_start_timeout: float = _setting(
        60.0,
        "Timeout for the start of an agent's session in seconds.",
        "OH_JUPYTER_AGENT_START_TIMEOUT",
        above=0,
    )
    max_upload_mb: float = _setting(
        4096.0,
        "Size limit of an upload, and of the contents of a zip file, in MiB.",
        above=0,
    )
    draft_model: str | None = _setting(
        None,
        "Name of the model that merges ambiguous draft edits; needs the extra draft.",
        "OH_JUPYTER_DRAFT_MODEL",
    )
    draft_base_url: str | None = _setting(
        None,
        "Endpoint of that model, with OpenAI's chat API. Default: $OPENAI_BASE_URL.",
        "OH_JUPYTER_DRAFT_BASE_URL",
    )
    draft_api_key: str = _setting(
        "",
        "Key of that endpoint; $OPENAI_API_KEY if empty. Secret: never logged.",
        "OH_JUPYTER_DRAFT_API_KEY",
        secret=True,
    )
    draft_correct_num: int = _setting(
        5,
        "Attempts of that model to correct its edit before the edit is dropped.",
        "OH_JUPYTER_DRAFT_CORRECT_NUM",
        minimum=0,
    )
    editor_history_limit: int = _setting(
        5000,
        "Undoable edits of each file.",
        "OH_JUPYTER_EDITOR_HISTORY_LIMIT",
        minimum=0,
    )
    editor_history_mb: float = _setting(
        256.0,
        "Size limit of a workspace's edit history in MiB; the oldest edits are dropped first.",
        "OH_JUPYTER_EDITOR_HISTORY_MB",
        minimum=0,
    )
    enable_auto_lint: bool = _setting(
        False, "Whether edits report new lint errors.", "ENABLE_AUTO_LINT"
    )
    plugins: tuple[str, ...] = _setting(
        ("agent_skills", "jupyter"), "Plugins to load, by requirement name."
    )
    vscode_path: str | None = _setting(
        None,
        "openvscode-server or code-server for the plugin vscode. Default: found on the PATH.",
        "OH_JUPYTER_VSCODE",
    )
    vscode_base_url: str | None = _setting(
        None,
        "Base path of the Jupyter server, such as /user/ann/, for that plugin; the server sets it "
        "in its default kernel.",
        "OH_JUPYTER_VSCODE_BASE_URL",
    )
    kernel_url: str | None = _setting(
        None,
        "Jupyter server or Kernel Gateway for cells, if the runtime is not in a kernel.",
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
        "Root of a local store (default: ~/.openhands), or bucket, or bucket/prefix.",
        "FILE_STORE_PATH",
    )
    file_store_web_hook_url: str | None = _setting(
        None, "Address to which changes of the store are reported.", "FILE_STORE_WEB_HOOK_URL"
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
        "Directory or SQLite file that keeps reports until they are accepted; none if empty. "
        "Default: in the user's state directory.",
        "FILE_STORE_WEB_HOOK_OUTBOX",
    )
    file_store_web_hook_secret: str | None = _setting(
        None,
        "Secret that signs the reports by the Standard Webhooks scheme (whsec_...); several, "
        "separated by spaces, during a rotation. Secret: never logged.",
        "FILE_STORE_WEB_HOOK_SECRET",
        secret=True,
    )


def check_name(name: str, where: str = "") -> None:
    """Raise ConfigError for a setting that does not exist, with the nearest name."""
    names = Settings.__dataclass_fields__
    if name not in names:
        known = did_you_mean(name, names) or f"Settings: {', '.join(names)}"
        raise ConfigError(f"{where or 'Settings'}: there is no setting {name!r}. {known}".rstrip())


def check_value(name: str, value: Any, where: str = "") -> None:
    """Raise ConfigError if a setting has choices or a range, and the value is not in them."""
    if value is None:
        return
    allowed = Settings.__dataclass_fields__[name].metadata
    where = where or f"The setting {name}"
    if name == "policy":
        check_policy(value, where)
    if allowed["choices"] and value not in allowed["choices"]:
        choices = ", ".join(allowed["choices"])
        raise ConfigError(f"{where} must be one of {choices}, not {value!r}")
    minimum, above = allowed["minimum"], allowed["above"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if minimum is not None and not (is_number and value >= minimum):  # nor NaN
        raise ConfigError(f"{where} must be a number of at least {minimum}, not {value!r}")
    if above is not None and not (is_number and value > above):
        raise ConfigError(f"{where} must be a number greater than {above}, not {value!r}")


def secret_variables() -> set[str]:
    """Return the names of the environment variables of secret settings."""
    secret = (setting.metadata for setting in fields(Settings) if setting.metadata["secret"])
    return {variable for metadata in secret for variable in metadata["variables"]}
