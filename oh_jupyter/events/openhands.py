"""Events of OpenHands' agents, for reading their logs; the runtime does not execute them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from oh_jupyter.events.action import Action, ActionSecurityRisk
from oh_jupyter.events.observation import Observation

__all__ = [
    "AgentCondensationObservation",
    "AgentDelegateAction",
    "AgentDelegateObservation",
    "AgentFinishAction",
    "AgentRejectAction",
    "AgentStateChangedObservation",
    "AgentThinkAction",
    "ChangeAgentStateAction",
    "CondensationAction",
    "CondensationRequestAction",
    "LoopDetectionObservation",
    "LoopRecoveryAction",
    "MessageAction",
    "NullAction",
    "RecallAction",
    "RecallObservation",
    "RecallType",
    "SuccessObservation",
    "SystemMessageAction",
    "TaskTrackingAction",
    "TaskTrackingObservation",
]

RecallType = Literal["workspace_context", "knowledge"]
"""Kind of recall: facts about the workspace, or the knowledge of microagents."""


class AgentAction(Action):
    """Action that an agent's own program executes, not the runtime."""

    runnable: ClassVar[bool] = False


@dataclass(repr=False, eq=False)
class AgentThinkAction(AgentAction):
    """Thought of the agent.

    Attributes:
        thought: The thought.
    """

    kind: ClassVar[str] = "think"
    says: ClassVar[str] = "I am thinking...: {self.thought}"

    thought: str = ""


@dataclass(repr=False, eq=False)
class AgentFinishAction(AgentAction):
    """End of the agent's task.

    Attributes:
        final_thought: Its closing message.
        outputs: Further results.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "finish"

    final_thought: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    thought: str = ""

    @property
    def message(self) -> str:
        """The last thought."""
        return self.thought or self.final_thought


@dataclass(repr=False, eq=False)
class MessageAction(AgentAction):
    """Message between user and agent.

    Attributes:
        content: The text.
        file_urls: Attached files.
        image_urls: Attached images.
        wait_for_response: Whether a response is expected.
        security_risk: Risk as assessed by the agent.
    """

    kind: ClassVar[str] = "message"
    says: ClassVar[str] = "{self.content}"

    content: str
    file_urls: list[str] | None = None
    image_urls: list[str] | None = None
    wait_for_response: bool = False
    security_risk: ActionSecurityRisk = ActionSecurityRisk.UNKNOWN


@dataclass(repr=False, eq=False)
class NullAction(AgentAction):
    """Nothing to do."""

    kind: ClassVar[str] = "null"
    says: ClassVar[str] = "No action"


@dataclass(repr=False, eq=False)
class SystemMessageAction(AgentAction):
    """System prompt of an agent.

    Attributes:
        content: The text.
        tools: Descriptions of its tools for the language model.
        openhands_version: The version that wrote it.
        agent_class: Class of the agent.
    """

    kind: ClassVar[str] = "system"
    says: ClassVar[str] = "{self.content}"

    content: str
    tools: list[dict[str, Any]] | None = None
    openhands_version: str | None = None
    agent_class: str | None = None


@dataclass(repr=False, eq=False)
class AgentRejectAction(AgentAction):
    """Rejection of the task by the agent.

    Attributes:
        outputs: The ``reason``, and further results.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "reject"

    outputs: dict[str, Any] = field(default_factory=dict)
    thought: str = ""

    @property
    def message(self) -> str:
        """The reason."""
        return f"The agent rejects the task: {self.outputs.get('reason') or self.thought}"


@dataclass(repr=False, eq=False)
class AgentDelegateAction(AgentAction):
    """Delegation of a task to another agent.

    Attributes:
        agent: The other agent.
        inputs: Its inputs.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "delegate"
    says: ClassVar[str] = "Asking {self.agent} for help"

    agent: str
    inputs: dict[str, Any]
    thought: str = ""


@dataclass(repr=False, eq=False)
class RecallAction(AgentAction):
    """Search in the agent's memory.

    Attributes:
        recall_type: Kind of recall.
        query: Search text.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "recall"
    says: ClassVar[str] = "Recalling: {self.query}"

    recall_type: RecallType
    query: str = ""
    thought: str = ""


@dataclass(repr=False, eq=False)
class ChangeAgentStateAction(AgentAction):
    """Request to change the agent's state.

    Attributes:
        agent_state: The new state, such as ``paused``.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "change_agent_state"
    says: ClassVar[str] = "The agent's state becomes {self.agent_state}"

    agent_state: str
    thought: str = ""


@dataclass(repr=False, eq=False)
class CondensationAction(AgentAction):
    """Removal of events from the history, so that it fits into the model's context.

    Attributes:
        forgotten_event_ids: Ids of the removed events, unless they are a range.
        forgotten_events_start_id: First id of the range.
        forgotten_events_end_id: Last id of the range.
        summary: Summary that replaces them.
        summary_offset: Position of the summary in the history.
    """

    kind: ClassVar[str] = "condensation"

    forgotten_event_ids: list[int] | None = None
    forgotten_events_start_id: int | None = None
    forgotten_events_end_id: int | None = None
    summary: str | None = None
    summary_offset: int | None = None

    @property
    def message(self) -> str:
        """The summary."""
        return f"Events are forgotten: {self.summary or 'without a summary'}"


@dataclass(repr=False, eq=False)
class CondensationRequestAction(AgentAction):
    """Request to shorten the history."""

    kind: ClassVar[str] = "condensation_request"
    says: ClassVar[str] = "Requesting a shorter history"


@dataclass(repr=False, eq=False)
class TaskTrackingAction(AgentAction):
    """View or change of the agent's plan.

    Attributes:
        command: ``view`` or ``plan``.
        task_list: The tasks: ``title``, ``status`` and ``notes`` of each.
        thought: The agent's reason.
    """

    kind: ClassVar[str] = "task_tracking"

    command: str = "view"
    task_list: list[dict[str, Any]] = field(default_factory=list)
    thought: str = ""

    @property
    def message(self) -> str:
        """The number of tasks."""
        return f"The plan has {len(self.task_list)} tasks"


@dataclass(repr=False, eq=False)
class LoopRecoveryAction(AgentAction):
    """Recovery of an agent that repeats itself.

    Attributes:
        option: 1 asks the user again, 2 repeats the last request, 3 stops.
    """

    kind: ClassVar[str] = "loop_recovery"
    says: ClassVar[str] = "The agent repeats itself: option {self.option}"

    option: int = 1


@dataclass(repr=False, eq=False)
class AgentDelegateObservation(Observation):
    """Result of a delegated task.

    Attributes:
        outputs: The other agent's results.
    """

    kind: ClassVar[str] = "delegate"

    outputs: dict[str, Any] = field(default_factory=dict)


@dataclass(repr=False, eq=False)
class SuccessObservation(Observation):
    """Success of an Action."""

    kind: ClassVar[str] = "success"


@dataclass(repr=False, eq=False)
class AgentStateChangedObservation(Observation):
    """Change of the agent's state.

    Attributes:
        agent_state: The new state.
        reason: The reason.
    """

    kind: ClassVar[str] = "agent_state_changed"

    agent_state: str = ""
    reason: str = ""


@dataclass(repr=False, eq=False)
class AgentCondensationObservation(Observation):
    """Shortened history."""

    kind: ClassVar[str] = "condense"


@dataclass(repr=False, eq=False)
class RecallObservation(Observation):
    """Results from the agent's memory.

    Attributes:
        recall_type: Kind of recall.
        repo_name: The repository.
        repo_directory: Its directory.
        repo_branch: Its branch.
        repo_instructions: Its instructions for agents.
        runtime_hosts: Ports that the agent may use, by host.
        additional_agent_instructions: Instructions of the runtime.
        date: The current date.
        custom_secrets_descriptions: Descriptions of secrets, by name.
        conversation_instructions: Instructions of the user.
        working_dir: The agent's working directory.
        microagent_knowledge: ``name``, ``trigger`` and ``content`` of each microagent.
    """

    kind: ClassVar[str] = "recall"

    recall_type: RecallType = "workspace_context"
    repo_name: str = ""
    repo_directory: str = ""
    repo_branch: str = ""
    repo_instructions: str = ""
    runtime_hosts: dict[str, Any] = field(default_factory=dict)
    additional_agent_instructions: str = ""
    date: str = ""
    custom_secrets_descriptions: dict[str, Any] = field(default_factory=dict)
    conversation_instructions: str = ""
    working_dir: str = ""
    microagent_knowledge: list[dict[str, Any]] = field(default_factory=list)


@dataclass(repr=False, eq=False)
class TaskTrackingObservation(Observation):
    """Current plan of the agent.

    Attributes:
        command: The requested command.
        task_list: The tasks.
    """

    kind: ClassVar[str] = "task_tracking"

    command: str = ""
    task_list: list[dict[str, Any]] = field(default_factory=list)


@dataclass(repr=False, eq=False)
class LoopDetectionObservation(Observation):
    """Detection of an agent that repeats itself."""

    kind: ClassVar[str] = "loop_detection"
