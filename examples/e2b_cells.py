"""A program for E2B's code interpreter, unchanged, in an open notebook.

Start JupyterLab with ``oh_jupyter``, open a notebook, then::

    eval "$(oh-jupyter env --notebook my.ipynb)"    # sets OH_URL and OH_TOKEN
    export E2B_API_URL=$OH_URL/e2b E2B_SANDBOX_URL=$OH_URL/e2b E2B_API_KEY=$OH_TOKEN
    pip install e2b-code-interpreter
    python e2b_cells.py
"""

from __future__ import annotations

from e2b_code_interpreter import Sandbox

__all__ = ["main"]


def main() -> str | None:
    """Run two cells; return the text of the last."""
    with Sandbox.create() as sandbox:
        sandbox.run_code("answer = 6 * 7\nprint('computed')", on_stdout=print)
        return sandbox.run_code("answer").text


if __name__ == "__main__":
    print(main())
