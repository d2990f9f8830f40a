"""Names of what server, kernel and frontends say to each other over Jupyter's channels."""

KERNEL_INFO_FIELD = "oh_jupyter"
"""Field of the kernel_info_reply on the control channel by which a kernel shows that the
extension is loaded: one that does not know our requests logs an error for each."""

REQUEST_MESSAGE = "oh_jupyter_request"
"""Type of the one control-channel request; its content names an operation."""

SILENT_FIELD = "oh_jupyter_silent"
"""Metadata of a request whose sender needs no busy and idle status; frontends wait for them."""

RECEIVED_MESSAGE = "oh_jupyter_received"
"""Type of the message by which the kernel says that it begins with a request."""

REPLY_MESSAGE = "oh_jupyter_reply"
"""Type of the reply to it, sent when the operation is done."""

EVENT_MESSAGE = "oh_jupyter_event"
"""Type of the IOPub message that tells every frontend of an Action or Observation."""

DECISION_MESSAGE = "oh_jupyter_decision"
"""Type of the IOPub message that tells every frontend what was decided on a waiting Action."""

TURN_MESSAGE = "oh_jupyter_turn"
"""Type of the IOPub message that tells every frontend what a guest agent says and does."""

SETTLED_MESSAGE = "oh_jupyter_settled"
"""Type of the IOPub message that tells every frontend that the changes of a turn are known."""

GUEST_HEADER = "X-OH-Guest"
"""HTTP header by which a guest agent's requests name the conversation that they belong to."""

GUEST_VARIABLE = "OH_GUEST"
"""Environment variable that tells the same to the relay of an agent that starts programs only."""

RUNNING_HINT = (
    "You may wait longer to see additional output by sending empty command '', "
    "send other commands to interact with the current process, "
    'send keys ("C-c", "C-z", "C-d") to interrupt/kill the previous command before sending your '
    "new command, or use the timeout parameter in execute_bash for future commands."
)
"""OpenHands' literal advice on a command that still runs, at the end of three observations. Doors
whose callers have other tools and parameters put theirs in its place."""
