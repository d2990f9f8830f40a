"""The runtime in an IPython kernel: magics, the object ``oh``, and the control channel."""
