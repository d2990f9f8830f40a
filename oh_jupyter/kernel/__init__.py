"""The runtime inside an IPython kernel: magics, the ``oh`` object, the control channel."""
