"""Running cells: in a kernel over ZMQ, in a subprocess kernel, or behind a Jupyter server."""
