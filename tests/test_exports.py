"""The public face of each package: a name that moves or goes fails here before it fails a user."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

import oh_jupyter

PUBLIC = {
    "oh_jupyter": ["__version__", "load_ipython_extension", "unload_ipython_extension"],
    "oh_jupyter.agents": [
        *("AgentCommand", "AgentTurn", "ENTRY_POINT_GROUP", "GuestAgents", "PlanEntry"),
        *("ToolCall", "known_agents"),
    ],
    "oh_jupyter.browser": ["BrowserEnv", "flatten_axtree"],
    "oh_jupyter.cells": ["CellOutput", "CellRunner", "captured_outputs"],
    "oh_jupyter.checkpoints": [
        *("Checkpoint", "Checkpoints", "Limits", "PathChange", "RewindPlan", "VariableChange"),
    ],
    "oh_jupyter.cli": ["main"],
    "oh_jupyter.client": [
        *("AsyncFleetKernels", "AsyncRuntimeClient", "Fleet", "FleetEvent", "FleetKernels"),
        *("FleetResult", "LostKernel", "RuntimeClient"),
    ],
    "oh_jupyter.config": [
        *("DECISION_MESSAGE", "EVENT_MESSAGE", "KERNEL_INFO_FIELD", "OUTPUT_LIMIT"),
        *("RECEIVED_MESSAGE", "REPLY_MESSAGE", "REQUEST_MESSAGE", "SESSION_KEY_VARIABLE"),
        *("Settings", "TURN_MESSAGE", "load_settings", "secret_variables"),
    ],
    "oh_jupyter.editor": [
        *("COMMANDS", "EditorError", "EditorParameterInvalidError"),
        *("EditorParameterMissingError", "EditorResult", "FileChangedError", "FileEditor"),
        *("FileValidationError", "HistoryEntry", "NoHistoryError", "NoReplacementError"),
        *("PatchError", "Transaction"),
        *("CellChange", "ChangedFile", "HistoryPosition"),
    ],
    "oh_jupyter.editor.file_actions": ["edit_file", "read_file", "write_file"],
    "oh_jupyter.editor.draft": ["Merged", "Refused", "edit_by_draft", "merge", "read_draft"],
    "oh_jupyter.evaluation": [
        *("AgentLabAgent", "EpisodeLog", "Outcome", "PlayedTask", "RepositoryTask", "Results"),
        *("TaskSummary", "Trial", "load_instances", "plot_success", "run_trials", "summarize"),
    ],
    "oh_jupyter.events": [
        *("ACTIONS", "Action", "ActionConfirmationStatus", "ActionSecurityRisk"),
        *("AgentCondensationObservation", "AgentDelegateAction", "AgentDelegateObservation"),
        *("AgentFinishAction", "AgentRejectAction", "AgentStateChangedObservation"),
        *("AgentThinkAction", "AgentThinkObservation", "BrowseInteractiveAction"),
        *("BrowseURLAction", "BrowserOutputObservation", "ChangeAgentStateAction"),
        *("CmdOutputMetadata", "CmdOutputObservation", "CmdRunAction", "CondensationAction"),
        *("CondensationRequestAction", "ErrorObservation", "Event", "EventSource"),
        *("FileDownloadObservation", "FileEditAction", "FileEditObservation", "FileReadAction"),
        *("FileReadObservation", "FileWriteAction", "FileWriteObservation"),
        *("IPythonRunCellAction", "IPythonRunCellObservation", "LoopDetectionObservation"),
        *("LoopRecoveryAction", "MCPAction", "MCPObservation", "MessageAction", "NullAction"),
        *("NullObservation", "OBSERVATIONS", "Observation", "RecallAction", "RecallObservation"),
        *("SuccessObservation", "SystemMessageAction", "TaskTrackingAction"),
        *("TaskTrackingObservation", "UserRejectObservation"),
    ],
    "oh_jupyter.mcp_sdk": ["major"],
    "oh_jupyter.openhands": [
        *("IPythonTool", "KernelBrowserToolSet", "KernelFileEditorTool", "KernelTerminalTool"),
        *("NotebookTool", "connect", "run"),
    ],
    "oh_jupyter.operations": ["ENVELOPE", "Operation", "Scope", "arguments", "bounded"],
    "oh_jupyter.plugins": [
        *("ALL_PLUGINS", "AgentSkillsPlugin", "AgentSkillsRequirement", "CellOutput"),
        *("CellRunner", "ENTRY_POINT_GROUP", "JupyterPlugin", "JupyterRequirement", "Plugin"),
        *("PluginRequirement", "VSCodePlugin", "VSCodeRequirement", "make_plugins"),
    ],
    "oh_jupyter.process": ["PIPE", "Child", "spawn"],
    "oh_jupyter.runtime": ["ActionExecutor", "Runtime", "RuntimeThread", "list_directory"],
    "oh_jupyter.sandbox": [
        *("Box", "Engine", "Profile", "allowed_environment", "find_engine", "make_profile"),
    ],
    "oh_jupyter.shell": ["BashSession", "PowerShellSession", "ShellSession", "ShellSnapshot"],
    "oh_jupyter.skills": [
        *("Skill", "SkillFolder", "add", "available", "call_skill", "documentation", "find"),
        *("on_change", "register", "registry", "remove", "schema", "skill_folders"),
    ],
    "oh_jupyter.skills.agentskills": [
        *("explore_tree_structure", "file_editor", "find_file", "get_entity_contents"),
        *("goto_line", "open_file", "scroll_down", "scroll_up", "search_code_snippets"),
        *("search_dir", "search_file"),
    ],
    "oh_jupyter.storage": [
        *("BatchedWebHookFileStore", "Delivery", "DeliveryReport", "FailedDelivery", "FileInfo"),
        *("FileStore", "FsspecFileStore", "GoogleCloudFileStore", "InMemoryFileStore"),
        *("LocalFileStore", "S3FileStore", "Transfer", "WebHookFileStore", "copy"),
        *("get_file_store", "sync"),
    ],
    "oh_jupyter.testing": [
        *("CellRunnerContract", "FileStoreContract", "LiveKernel", "LiveServer", "descendants"),
        *("live_kernel", "live_server", "run_server", "suspended", "wait_until"),
    ],
}


ROOMS = Path(oh_jupyter.__file__).parent
# The folder of its tests may be found under the SDK's name.
HAS_SDK = bool(find_spec("openhands") and find_spec("openhands.sdk"))
NEEDS_SDK = pytest.mark.skipif(not HAS_SDK, reason="needs the OpenHands SDK")
PACKAGES = [
    pytest.param(package, marks=NEEDS_SDK) if package == "oh_jupyter.openhands" else package
    for package in PUBLIC
]


def test_all_packages_that_export_something_are_known() -> None:
    rooms = [
        file.parent.name for file in ROOMS.glob("*/__init__.py") if "__all__" in file.read_text()
    ]
    assert {f"oh_jupyter.{room}" for room in rooms} <= PUBLIC.keys()


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_stay(package: str) -> None:
    module = importlib.import_module(package)
    missing = set(PUBLIC[package]) - set(module.__all__)
    assert not missing
    for name in PUBLIC[package]:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_exist_and_are_distinct(package: str) -> None:
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert hasattr(module, name), name
