"""Contract of everything that runs cells."""

from __future__ import annotations

from collections.abc import Callable

import nbformat

from oh_jupyter.cells import CellOutput

RunCell = Callable[..., CellOutput]

_SHOW_A_PICTURE = """
from IPython.display import Image, display
display(Image(bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c"
    "636460f8cf500f000386018068d5a37f0000000049454e44ae426082"), format="png"))
"""


class CellRunnerContract:
    """Tests of the contract of ``CellRunner``.

    Inherit it in a test module, and define a fixture ``run_cell`` that runs a cell to its end::

        class TestMyRunner(CellRunnerContract):
            @pytest.fixture
            def run_cell(self):
                with asyncio.Runner() as loop:
                    runner = MyRunner()
                    yield lambda code, **options: loop.run(runner.run_cell(code, **options))
    """

    def test_streams_and_results_come_in_order(self, run_cell: RunCell) -> None:
        done = run_cell("import sys\nprint('a', flush=True)\nprint('b', file=sys.stderr)\n6 * 7")
        assert done.text.split() == ["a", "b", "42"]
        assert (done.timed_out, done.image_urls, done.omitted_chars) == (False, [], 0)
        assert done.execution_count is not None

    def test_state_is_kept(self, run_cell: RunCell) -> None:
        assert run_cell("kept = 20").text == ""
        assert run_cell("kept + 1").text == "21"

    def test_a_silent_cell_is_run(self, run_cell: RunCell) -> None:
        run_cell("quietly = 5", silent=True)
        assert run_cell("quietly").text == "5"

    def test_text_arrives_as_it_is(self, run_cell: RunCell) -> None:
        text = "grüße 日本 \N{GRINNING FACE} \\ ' \" \t end"
        assert run_cell(f"print({text!r})").text.rstrip("\n") == text

    def test_a_failed_cell_shows_its_traceback_without_colours(self, run_cell: RunCell) -> None:
        text = run_cell("1 / 0").text
        assert "ZeroDivisionError: division by zero" in text
        assert "\x1b[" not in text
        assert run_cell("'still alive'").text == "'still alive'"

    def test_pictures_are_data_urls(self, run_cell: RunCell) -> None:
        (url,) = run_cell(_SHOW_A_PICTURE).image_urls
        assert url.startswith("data:image/png;base64,")

    def test_outputs_are_those_of_a_notebook(self, run_cell: RunCell) -> None:
        outputs = run_cell("print('a')\n6 * 7").notebook_outputs
        assert [output["output_type"] for output in outputs] == ["stream", "execute_result"]
        empty = {"cell_type": "code", "id": "cell", "metadata": {}, "source": ""}
        cells = [{**empty, "execution_count": 1, "outputs": outputs}]
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}
        nbformat.validate(notebook)

    def test_a_long_line_arrives_as_a_whole(self, run_cell: RunCell) -> None:
        done = run_cell("print('begin' + 'x' * 100_000 + 'end')")
        assert done.text.rstrip("\n") == "begin" + "x" * 100_000 + "end"
        assert done.omitted_chars == 0

    def test_a_cell_whose_time_is_over_is_interrupted(self, run_cell: RunCell) -> None:
        late = run_cell("print('started', flush=True)\nimport time; time.sleep(600)", timeout=3)
        assert late.timed_out
        assert late.text.startswith("started")
        assert run_cell("'still alive'").text == "'still alive'"
