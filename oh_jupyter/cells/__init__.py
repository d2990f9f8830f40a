"""Running cells: in a kernel over ZMQ, in a subprocess kernel, or behind a Jupyter server."""

from oh_jupyter.cells.base import CellOutput, CellRunner, captured_outputs

__all__ = ["CellOutput", "CellRunner", "captured_outputs"]
