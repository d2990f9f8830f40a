"""The events of OpenHands' agents, known so that its logs can be read; no runtime does them."""

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
"""What is recalled: facts about the workspace, or what microagents know."""


class AgentAction(Action):
    """An Action that an agent's own program carries out, and no runtime."""

    runnable: ClassVar[bool] = False


@dataclass(repr=False, eq=False)
class AgentThinkAction(AgentAction):
    """A thought of the agent, kept in the log.

    Attributes:
        thought: The thought.
    """

    kind: ClassVar[str] = "think"
    says: ClassVar[str] = "I am thinking...: {self.thought}"

    thought: str = ""


@dataclass(repr=False, eq=False)
class AgentFinishAction(AgentAction):
    """The agent is done.

    Attributes:
        final_thought: What it has to say in the end.
        outputs: Anything else it returns.
        thought: Why it is done.
    """

    kind: ClassVar[str] = "finish"

    final_thought: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    thought: str = ""

    @property
    def message(self) -> str:
        """Quote the last thought."""
        return self.thought or self.final_thought


@dataclass(repr=False, eq=False)
class MessageAction(AgentAction):
    """A message between person and agent.

    Attributes:
        content: The text.
        file_urls: Files that go with it.
        image_urls: Images that go with it.
        wait_for_response: Whether an answer is expected.
        security_risk: The risk that the agent assigns.
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
    """The instructions that an agent begins with.

    Attributes:
        content: The text.
        tools: The tools that it may call, as its language model is told of them.
        openhands_version: The version that wrote it.
        agent_class: Which agent it is for.
    """

    kind: ClassVar[str] = "system"
    says: ClassVar[str] = "{self.content}"

    content: str
    tools: list[dict[str, Any]] | None = None
    openhands_version: str | None = None
    agent_class: str | None = None


@dataclass(repr=False, eq=False)
class AgentRejectAction(AgentAction):
    """The agent gives the task back.

    Attributes:
        outputs: Why, under ``reason``, and anything else.
        thought: Why it does so.
    """

    kind: ClassVar[str] = "reject"

    outputs: dict[str, Any] = field(default_factory=dict)
    thought: str = ""

    @property
    def message(self) -> str:
        """Name the reason."""
        return f"The agent gives the task back: {self.outputs.get('reason') or self.thought}"


@dataclass(repr=False, eq=False)
class AgentDelegateAction(AgentAction):
    """The agent has another one do something.

    Attributes:
        agent: Which one.
        inputs: What it is given.
        thought: Why.
    """

    kind: ClassVar[str] = "delegate"
    says: ClassVar[str] = "Asking {self.agent} for help"

    agent: str
    inputs: dict[str, Any]
    thought: str = ""


@dataclass(repr=False, eq=False)
class RecallAction(AgentAction):
    """Something is looked for in the agent's memory.

    Attributes:
        recall_type: Of which kind.
        query: What it must be about.
        thought: Why.
    """

    kind: ClassVar[str] = "recall"
    says: ClassVar[str] = "Recalling: {self.query}"

    recall_type: RecallType
    query: str = ""
    thought: str = ""


@dataclass(repr=False, eq=False)
class ChangeAgentStateAction(AgentAction):
    """The agent is to be in another state.

    Attributes:
        agent_state: Which, such as ``paused``.
        thought: Why.
    """

    kind: ClassVar[str] = "change_agent_state"
    says: ClassVar[str] = "The agent's state becomes {self.agent_state}"

    agent_state: str
    thought: str = ""


@dataclass(repr=False, eq=False)
class CondensationAction(AgentAction):
    """Events are forgotten, so that the history fits into the model's context.

    Attributes:
        forgotten_event_ids: Which, unless they are given as a range.
        forgotten_events_start_id: The first.
        forgotten_events_end_id: The last.
        summary: What takes their place.
        summary_offset: Where in the history.
    """

    kind: ClassVar[str] = "condensation"

    forgotten_event_ids: list[int] | None = None
    forgotten_events_start_id: int | None = None
    forgotten_events_end_id: int | None = None
    summary: str | None = None
    summary_offset: int | None = None

    @property
    def message(self) -> str:
        """Quote the summary."""
        return f"Events are forgotten: {self.summary or 'without a summary'}"


@dataclass(repr=False, eq=False)
class CondensationRequestAction(AgentAction):
    """The history is to become shorter."""

    kind: ClassVar[str] = "condensation_request"
    says: ClassVar[str] = "The history is to become shorter"


@dataclass(repr=False, eq=False)
class TaskTrackingAction(AgentAction):
    """The agent looks at its plan, or changes it.

    Attributes:
        command: ``view`` or ``plan``.
        task_list: The tasks: ``title``, ``status`` and ``notes`` of each.
        thought: Why.
    """

    kind: ClassVar[str] = "task_tracking"

    command: str = "view"
    task_list: list[dict[str, Any]] = field(default_factory=list)
    thought: str = ""

    @property
    def message(self) -> str:
        """Count the tasks."""
        return f"The plan has {len(self.task_list)} tasks"


@dataclass(repr=False, eq=False)
class LoopRecoveryAction(AgentAction):
    """What to do with an agent that repeats itself.

    Attributes:
        option: 1 asks the person again, 2 repeats the last request, 3 stops.
    """

    kind: ClassVar[str] = "loop_recovery"
    says: ClassVar[str] = "The agent repeats itself: option {self.option}"

    option: int = 1


@dataclass(repr=False, eq=False)
class AgentDelegateObservation(Observation):
    """Another agent has done its part.

    Attributes:
        outputs: What it returns.
    """

    kind: ClassVar[str] = "delegate"

    outputs: dict[str, Any] = field(default_factory=dict)


@dataclass(repr=False, eq=False)
class SuccessObservation(Observation):
    """Something worked."""

    kind: ClassVar[str] = "success"


@dataclass(repr=False, eq=False)
class AgentStateChangedObservation(Observation):
    """The agent is in another state.

    Attributes:
        agent_state: Which.
        reason: Why.
    """

    kind: ClassVar[str] = "agent_state_changed"

    agent_state: str = ""
    reason: str = ""


@dataclass(repr=False, eq=False)
class AgentCondensationObservation(Observation):
    """The history became shorter."""

    kind: ClassVar[str] = "condense"


@dataclass(repr=False, eq=False)
class RecallObservation(Observation):
    """What was found in the agent's memory.

    Attributes:
        recall_type: Of which kind it is.
        repo_name: The repository that is worked on.
        repo_directory: Where it is.
        repo_branch: Its branch.
        repo_instructions: What its people want agents to know.
        runtime_hosts: Port by host that the agent may use.
        additional_agent_instructions: What the runtime adds.
        date: Today.
        custom_secrets_descriptions: What each secret is for, by its name.
        conversation_instructions: What the person adds.
        working_dir: Where the agent works.
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
    """The plan as it is.

    Attributes:
        command: What was asked for.
        task_list: The tasks.
    """

    kind: ClassVar[str] = "task_tracking"

    command: str = ""
    task_list: list[dict[str, Any]] = field(default_factory=list)


@dataclass(repr=False, eq=False)
class LoopDetectionObservation(Observation):
    """The agent was found to repeat itself."""

    kind: ClassVar[str] = "loop_detection"
