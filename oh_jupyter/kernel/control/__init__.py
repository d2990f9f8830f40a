"""The kernel side of the control channel: remote procedure calls and events."""
