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
