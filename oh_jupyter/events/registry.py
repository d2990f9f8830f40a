"""Every type of event by its name on the wire."""

from __future__ import annotations

from oh_jupyter.events.action import (
    Action,
    BrowseInteractiveAction,
    BrowseURLAction,
    CmdRunAction,
    FileEditAction,
    FileReadAction,
    FileWriteAction,
    IPythonRunCellAction,
)
from oh_jupyter.events.bookkeeping import (
    AgentCondensationObservation,
    AgentDelegateAction,
    AgentDelegateObservation,
    AgentRejectAction,
    AgentStateChangedObservation,
    ChangeAgentStateAction,
    CondensationAction,
    CondensationRequestAction,
    LoopDetectionObservation,
    LoopRecoveryAction,
    RecallAction,
    RecallObservation,
    SuccessObservation,
    SystemMessageAction,
    TaskTrackingAction,
    TaskTrackingObservation,
)
from oh_jupyter.events.conversation import (
    AgentFinishAction,
    AgentThinkAction,
    MCPAction,
    MessageAction,
    NullAction,
)
from oh_jupyter.events.observation import (
    AgentThinkObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    ErrorObservation,
    FileDownloadObservation,
    FileEditObservation,
    FileReadObservation,
    FileWriteObservation,
    IPythonRunCellObservation,
    MCPObservation,
    NullObservation,
    Observation,
    UserRejectObservation,
)

__all__ = ["ACTIONS", "OBSERVATIONS"]

ACTIONS: dict[str, type[Action]] = {
    cls.kind: cls
    for cls in (
        CmdRunAction,
        IPythonRunCellAction,
        FileReadAction,
        FileWriteAction,
        FileEditAction,
        BrowseURLAction,
        BrowseInteractiveAction,
        MCPAction,
        AgentThinkAction,
        AgentFinishAction,
        MessageAction,
        NullAction,
        SystemMessageAction,
        AgentRejectAction,
        AgentDelegateAction,
        RecallAction,
        ChangeAgentStateAction,
        CondensationAction,
        CondensationRequestAction,
        TaskTrackingAction,
        LoopRecoveryAction,
    )
}
"""Every Action class by its type on the wire."""

OBSERVATIONS: dict[str, type[Observation]] = {
    cls.kind: cls
    for cls in (
        CmdOutputObservation,
        IPythonRunCellObservation,
        FileReadObservation,
        FileWriteObservation,
        FileEditObservation,
        BrowserOutputObservation,
        FileDownloadObservation,
        ErrorObservation,
        MCPObservation,
        NullObservation,
        AgentThinkObservation,
        UserRejectObservation,
        AgentDelegateObservation,
        SuccessObservation,
        AgentStateChangedObservation,
        AgentCondensationObservation,
        RecallObservation,
        TaskTrackingObservation,
        LoopDetectionObservation,
    )
}
"""Every Observation class by its type on the wire."""
