"""The operator's settings: their fields and their sources."""

from oh_jupyter.config.folder import FILE_NAME, IsTrusted, SettingsFile, shown_settings
from oh_jupyter.config.settings import (
    OUTPUT_LIMIT,
    Settings,
    check_name,
    check_value,
    secret_variables,
)
from oh_jupyter.config.sources import (
    BOXED_KERNEL_VARIABLE,
    CONFIG_FILE_VARIABLE,
    SESSION_KEY_VARIABLE,
    environment_without_secrets,
    faults_of,
    folder_settings,
    load_settings,
    read_settings,
    state_home,
)
from oh_jupyter.control_messages import (
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
    "BOXED_KERNEL_VARIABLE",
    "CONFIG_FILE_VARIABLE",
    "DECISION_MESSAGE",
    "EVENT_MESSAGE",
    "FILE_NAME",
    "KERNEL_INFO_FIELD",
    "OUTPUT_LIMIT",
    "RECEIVED_MESSAGE",
    "REPLY_MESSAGE",
    "REQUEST_MESSAGE",
    "SESSION_KEY_VARIABLE",
    "SILENT_FIELD",
    "TURN_MESSAGE",
    "IsTrusted",
    "Settings",
    "SettingsFile",
    "check_name",
    "check_value",
    "environment_without_secrets",
    "faults_of",
    "folder_settings",
    "load_settings",
    "read_settings",
    "secret_variables",
    "shown_settings",
    "state_home",
]
