"""The kernel of a notebook by MCP: variables beside a running cell, interrupt, restart, runs."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest
from mcp_client import text_of
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from oh_jupyter.mcp_tools.kernel import Kernel
from oh_jupyter.operations.actions import Confirm
from oh_jupyter.operations.runtime import Status
from oh_jupyter.server.state import state_of

LOOP = """\
import time
losses = []
for step in range(600):
    losses.append(step)
    print("step", step, flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def stored(jp_root_dir: Path):
    return lambda: nbformat.read(jp_root_dir / "book.ipynb", as_version=4).cells


async def test_variables_are_seen_while_a_cell_runs(mcp_connect, book, stored) -> None:
    kernel = await book("import numpy as np\nscores = np.arange(12.0).reshape(3, 4)", LOOP)
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        started = await session.call_tool("run_cell", {"cell": 1, "wait": 0.5})
        assert "It continues, and its outputs will be in the notebook" in text_of(started)

        async def see(**arguments) -> str:
            before = time.monotonic()
            seen = await session.call_tool("variables", arguments)
            assert not seen.is_error, text_of(seen)
            assert time.monotonic() - before < 10
            return text_of(seen)

        overview = await see()
        assert "scores  ndarray 3 x 4" in " ".join(overview.split(" ")).replace("   ", "  ")
        assert "modules: np, time" in overview
        assert "scores" not in await see(pattern="loss*")
        detail = await see(name="scores")
        assert detail.startswith("scores: ndarray 3 x 4, float64")
        first = int((await see(expression="len(losses)")).splitlines()[-1])
        async with asyncio.timeout(30):
            while int((await see(expression="len(losses)")).splitlines()[-1]) <= first:
                pass
        status = json.loads(text_of(await session.call_tool("kernel", {"command": "status"})))
        assert status["cell"]["first_line"] == "import time"
        assert status["cell"]["by"] == "agent"
        progress = text_of(await session.call_tool("read_cells", {"start": 1}))
        assert "step" in progress
        assert "[Running for" in progress
        stopped = text_of(await session.call_tool("kernel", {"command": "interrupt"}))
        assert stopped.startswith("Interrupted the cell that had been running for")
        async with asyncio.timeout(30):
            while "KeyboardInterrupt" not in progress or "[Running for" in progress:
                progress = text_of(await session.call_tool("read_cells", {"start": 1}))
        assert stored()[1].outputs[-1].ename == "KeyboardInterrupt"
        assert stored()[1].execution_count == 2
        # The looks left no trace.
        last = await session.call_tool("run_ipython", {"code": "len(In), '_' in globals() and _"})
        assert text_of(last).splitlines()[0] == "(3, '')"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"name": "nothing"}, "There is no variable 'nothing'"),
        ({"expression": "x = 1"}, "is not a Python expression"),
        ({"expression": "1/0"}, "ZeroDivisionError: division by zero"),
        ({"expression": ""}, "is not a Python expression"),
        ({"save_to": "a.csv"}, "save_to needs the name of the variable"),
    ],
)
async def test_outputs_that_cannot_be_shown(mcp_connect, book, arguments, reason) -> None:
    kernel = await book("pass")
    async with mcp_connect(kernel) as session:
        seen = await session.call_tool("variables", arguments)
        assert seen.is_error
        assert reason in text_of(seen)


async def test_an_expression_changes_nothing(mcp_connect, book) -> None:
    kernel = await book("state = {'a': 1}\nnumbers = (print(n) or n for n in range(3))")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        for expression in ("state.clear()", "list(numbers)", "open('made.txt', 'w')"):
            seen = await session.call_tool("variables", {"expression": expression})
            assert seen.is_error
            assert text_of(seen).splitlines()[-1].startswith(f"{expression} could run code that")
            assert "Use run_ipython" in text_of(seen)
        seen = await session.call_tool("variables", {"expression": "state['a'] + 1.5"})
        assert text_of(seen).splitlines()[-1] == "2.5"
        left = await session.call_tool("run_ipython", {"code": "state, list(numbers)"})
        assert "({'a': 1}, [0, 1, 2])" in text_of(left)


@pytest.mark.thorough
async def test_a_table_and_a_figure_in_detail(mcp_connect, book, jp_root_dir) -> None:
    kernel = await book(
        "import pandas as pd, matplotlib.pyplot as plt\n"
        "df = pd.DataFrame({'city': ['a', 'b'] * 500, 'sales': range(1000)})\n"
        "fig, ax = plt.subplots(); ax.plot(df.sales); plt.close(fig)"
    )
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        table = text_of(await session.call_tool("variables", {"name": "df"}))
        assert "DataFrame 1000 x 2" in table
        assert "columns: city (" in table
        assert "sales (int64)" in table
        assert "mean" in table
        assert "499.5" in table
        assert len(table) < 1500
        saved = await session.call_tool("variables", {"name": "df", "save_to": "out/df.csv"})
        assert not saved.is_error
        assert text_of(saved).startswith("Saved df to out/df.csv (")
        assert (jp_root_dir / "out" / "df.csv").read_text().startswith("city,sales\na,0\n")
        away = await session.call_tool("variables", {"name": "df", "save_to": "/etc/df.csv"})
        assert "is outside of the workspace" in text_of(away)
        wrong = await session.call_tool("variables", {"name": "df", "save_to": "df.mp3"})
        assert "A DataFrame cannot be saved as .mp3. Use .csv, " in text_of(wrong)
        figure = await session.call_tool("variables", {"name": "fig"})
        assert [block.mime_type for block in figure.content if block.type == "image"] == [
            "image/png"
        ]


@pytest.mark.thorough
async def test_a_large_figure_is_stored_whole_and_shown_smaller(mcp_connect, book, stored) -> None:
    image_module = pytest.importorskip("PIL.Image")
    source = (
        "from PIL import Image\n"
        "display(Image.frombytes('RGB', (2000, 500), __import__('os').urandom(3_000_000)))"
    )
    kernel = await book(source)
    async with mcp_connect(kernel) as session:
        ran = await session.call_tool("run_cell", {"cell": 0})
        again = await session.call_tool("read_cells", {"start": 0})
    for done in (ran, again):
        assert not done.is_error, text_of(done)
        assert "[The picture is shown at 1568 x 392 of 2000 x 500.]" in text_of(done)
        (picture,) = [block for block in done.content if block.type == "image"]
        assert len(picture.data) <= 1_000_000
        shown = image_module.open(io.BytesIO(base64.b64decode(picture.data)))
        assert shown.size == (1568, 392)
    whole = base64.b64decode(stored()[0].outputs[0].data["image/png"])
    assert image_module.open(io.BytesIO(whole)).size == (2000, 500)


async def test_a_run_of_cells_ends_at_the_first_error(mcp_connect, book, stored) -> None:
    kernel = await book("a = 1", new_markdown_cell("# Part"), "a / 0", "b = 2")
    async with mcp_connect(kernel) as session:
        done = await session.call_tool("run_cell", {"cell": 0, "to": -1})
        assert done.is_error
        assert "ZeroDivisionError" in text_of(done)
        assert text_of(done).endswith("1 of 3 cells ran before.")
        assert [cell.get("execution_count") for cell in stored()] == [1, None, 2, None]
        await session.call_tool("edit_cell", {"cell": 2, "source": "print('half')"})
        done = await session.call_tool("run_cell", {"cell": 2, "to": 3})
        assert not done.is_error
        assert "half" in text_of(done)
        assert "[Ran 2 cells of book.ipynb.]" in text_of(done)
        refused = await session.call_tool("run_cell", {"cell": 2, "to": 0})
        assert "Cell 0 comes before cell 2; nothing was run." in text_of(refused)
        cleared = await session.call_tool("kernel", {"command": "clear_outputs"})
        assert text_of(cleared) == "Cleared the outputs of 3 cells of book.ipynb."
        assert [cell.get("execution_count") for cell in stored()] == [None] * 4


@pytest.mark.thorough
@pytest.mark.parametrize("approve", [True, False])
async def test_a_restart_is_a_question_that_names_the_losses(
    mcp_connect, book, ask, jp_serverapp, approve
) -> None:
    kernel = await book("treasure = 42")
    link = state_of(jp_serverapp.web_app.settings).router.link(kernel)
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        restart = asyncio.create_task(session.call_tool("kernel", {"command": "restart"}))
        async with asyncio.timeout(30):
            while not (waiting := (await ask("kernels", kernel, "confirmations"))[1]):
                pass
        (question,) = waiting
        assert "it loses 1 variable: treasure" in question["reasons"]
        await link.request(Confirm(question["id"], approve))
        done = text_of(await restart)
        left = text_of(await session.call_tool("variables", {}))
        if approve:
            assert done == "Restarted the kernel of book.ipynb. All variables are gone."
            assert left == "There are no such variables."
        else:
            assert "rejected by the user" in done
            assert left.startswith("treasure")


@pytest.mark.thorough
async def test_an_interrupt_where_the_extension_is_not_loaded(mcp_connect, book) -> None:
    async with mcp_connect(await book("pass")) as session:
        done = await session.call_tool("kernel", {"command": "interrupt"})
        assert text_of(done) == "Interrupted whatever ran in the kernel, which lacks oh_jupyter."
        await session.call_tool("run", {"command": "true"})
        done = await session.call_tool("kernel", {"command": "interrupt"})
        assert text_of(done) == "No cell is running; nothing was interrupted."


async def test_a_tagged_cell_is_left_alone(mcp_connect, book, stored) -> None:
    precious = new_code_cell(
        "precious = 1", metadata={"tags": ["agent-keep-out"]}, execution_count=7
    )
    kernel = await book(precious)
    async with mcp_connect(kernel) as session:
        for tool, arguments in (
            ("edit_cell", {"cell": 0, "source": "x"}),
            ("edit_cell", {"cell": 0, "delete": True}),
            ("edit_cell", {"cell": 0, "index": 0}),
            ("run_cell", {"cell": 0}),
        ):
            refused = await session.call_tool(tool, arguments)
            assert refused.is_error
            assert "tagged agent-keep-out" in text_of(refused)
        cleared = await session.call_tool("kernel", {"command": "clear_outputs"})
        assert text_of(cleared) == "Cleared the outputs of 0 cells of book.ipynb."
    assert (stored()[0].source, stored()[0].execution_count) == ("precious = 1", 7)


async def test_a_notebook_is_created_with_a_kernel(mcp_connect, jp_root_dir) -> None:
    async with mcp_connect() as session:
        missing = {"command": "start", "notebook": "new.ipynb", "kernel_name": "nothing"}
        refused = text_of(await session.call_tool("kernel", missing))
        assert refused.startswith("There is no kernel 'nothing'. Kernels: ")
        started = await session.call_tool("kernel", {"command": "start", "notebook": "new.ipynb"})
        assert text_of(started).startswith("Created new.ipynb with the kernel ")
        again = await session.call_tool("kernel", {"command": "start", "notebook": "new.ipynb"})
        assert "is open already" in text_of(again)
        await session.call_tool(
            "insert_cell", {"notebook": "new.ipynb", "source": "1 + 1", "run": True}
        )
    assert nbformat.read(jp_root_dir / "new.ipynb", as_version=4).cells[0].outputs


AWKWARD = """import time
class Slow:
    def __repr__(self): time.sleep(600)
class Dynamic:
    def __getattr__(self, name): time.sleep(600)
class Raises:
    def __repr__(self): raise SystemExit
    def __getattr__(self, name): raise KeyboardInterrupt
a_first, slow, dynamic, raises, z_last = 1, Slow(), Dynamic(), Raises(), 2
"""


async def test_an_awkward_object_hides_no_other(mcp_connect, book) -> None:
    kernel = await book(AWKWARD)
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        listed = await session.call_tool("variables", {})
        assert not listed.is_error
        rows = {line.split()[0]: line for line in text_of(listed).splitlines()}
        assert rows["a_first"].endswith("  1")
        assert rows["z_last"].endswith("  2")
        for name in ("slow", "dynamic", "raises"):
            assert "<cannot be shown: " in rows[name]


@pytest.mark.parametrize("address", ["store:results/m.csv", "s3://bucket/m.csv"])
async def test_a_variable_is_saved_to_no_address(mcp_connect, book, jp_root_dir, address) -> None:
    kernel = await book("m = 'a,b'")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0})
        arguments = {"name": "m", "save_to": address}
        refused = await session.call_tool("variables", arguments)
        assert refused.is_error
        assert "nothing was saved" in text_of(refused)
        assert "file='variable:m'" in text_of(refused)
    assert not [path for path in jp_root_dir.iterdir() if ":" in path.name]


async def test_the_address_of_the_server_has_one_kernel_for_every_tool(
    mcp_connect, book, wait_for_cell
) -> None:
    kernel = await book("theirs = 1\nimport time\nwhile True: time.sleep(0.1)")
    async with mcp_connect() as agent, mcp_connect(kernel) as other:
        await other.call_tool("run_cell", {"cell": 0, "wait": 0})
        await wait_for_cell(other)
        ran = text_of(await agent.call_tool("run_ipython", {"code": "ours = 2; ours"}))
        assert "All tools of this address work in one kernel, the server's default one" in ran
        assert "notebook='book.ipynb'" in ran
        overview = text_of(await agent.call_tool("variables", {}))
        assert "ours" in overview
        assert "theirs" not in overview
        assert "All tools of this address" not in overview
        stopped = text_of(await agent.call_tool("kernel", {"command": "interrupt"}))
        assert stopped == (
            "No cell is running in the server's default kernel; nothing was interrupted."
        )
        status = json.loads(text_of(await agent.call_tool("kernel", {"command": "status"})))
        assert status["kernel"] == "the server's default kernel"
        assert status.get("cell") is None
        of_book = {"notebook": "book.ipynb"}
        assert "theirs" in text_of(await agent.call_tool("variables", of_book))
        stopped = await agent.call_tool("kernel", {"command": "interrupt", **of_book})
        assert text_of(stopped).startswith("Interrupted the cell that had been running for")


@pytest.fixture
def wait_for_cell():
    """Wait until a cell runs in the kernel of a session."""

    async def wait_for_cell(session) -> None:
        async with asyncio.timeout(60):
            while True:
                status = await session.call_tool("kernel", {"command": "status"})
                if json.loads(text_of(status)).get("cell"):
                    return

    return wait_for_cell


@pytest.mark.parametrize("what", ["reload", "unload"])
async def test_an_agent_that_reloads_the_extension_continues(
    mcp_connect, book, jp_serverapp, approve_next, what
) -> None:
    kernel = await book("a = 1")
    code = f"%{what}_ext oh_jupyter\n'still here'"
    async with mcp_connect(kernel) as session:
        assert not (await session.call_tool("run_cell", {"cell": 0})).is_error
        link = state_of(jp_serverapp.web_app.settings).router.link(kernel)
        before = (await link.request(Status())).fields["generation"]
        call = asyncio.create_task(session.call_tool("run_ipython", {"code": code}))
        await approve_next(kernel)
        ran = text_of(await call)
        assert f"oh_jupyter will be {what}ed when this cell has ended." in ran
        assert "still here" in ran
        inserted = text_of(
            await session.call_tool("insert_cell", {"source": "a + 41", "run": True})
        )
        assert inserted.startswith("42")
        assert "a  int" in " ".join(text_of(await session.call_tool("variables", {})).split(" "))
        assert (await link.request(Status())).fields["generation"] != before


@pytest.fixture
def approve_next(ask, jp_serverapp):
    """Approve the Action that waits in a kernel."""

    async def approve_next(kernel: str) -> None:
        async with asyncio.timeout(60):
            while not (waiting := (await ask("kernels", kernel, "confirmations"))[1]):
                pass
        link = state_of(jp_serverapp.web_app.settings).router.link(kernel)
        await link.request(Confirm(waiting[0]["id"], True))

    return approve_next


R = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}


@pytest.mark.parametrize(
    ("metadata", "chosen", "reason"),
    [
        (R, {}, "There is no kernel 'ir', for which old.ipynb was written. Kernels: "),
        (R, {"kernel_name": "python3"}, "old.ipynb is in R, and the kernel 'python3' runs python"),
        (
            {"language_info": {"name": "julia"}},
            {},
            "old.ipynb is in julia, and no kernel runs that",
        ),
        ({"kernelspec": {**R["kernelspec"], "language": "python"}}, {"kernel_name": "python3"}, ""),
        ({"language_info": {"name": "python"}}, {}, ""),
        ({}, {}, ""),
    ],
)
async def test_a_notebook_gets_a_kernel_of_its_language(
    mcp_connect, jp_root_dir, metadata, chosen, reason
) -> None:
    nbformat.write(new_notebook(metadata=metadata), jp_root_dir / "old.ipynb")
    async with mcp_connect() as session:
        arguments = {"command": "start", "notebook": "old.ipynb", **chosen}
        started = await session.call_tool("kernel", arguments)
        assert started.is_error == bool(reason)
        assert text_of(started).startswith(reason or "Opened old.ipynb with the kernel ")


async def test_a_new_notebook_gets_its_folders_and_the_name_of_its_kernel(
    mcp_connect, jp_root_dir
) -> None:
    async with mcp_connect() as session:
        arguments = {"command": "start", "notebook": "new/deep/notes.ipynb"}
        started = text_of(await session.call_tool("kernel", arguments))
    assert started.startswith("Created new/deep/notes.ipynb with the kernel ")
    created = nbformat.read(jp_root_dir / "new" / "deep" / "notes.ipynb", as_version=4)
    assert created.metadata.kernelspec.name == "python3"


@pytest.mark.thorough
async def test_a_long_notebook_is_found_piece_by_piece(mcp_connect, book) -> None:
    cells = [
        new_markdown_cell("# Loading"),
        *(f"value_{n} = {n}  # {'x' * 300}" for n in range(149)),
    ]
    kernel = await book(*cells)
    async with mcp_connect(kernel) as session:
        first = text_of(await session.call_tool("read_cells", {}))
        assert first.startswith("book.ipynb: 150 cells")
        assert "# Loading" in first
        assert "value_148 = 148" in first
        outlined = text_of(await session.call_tool("read_cells", {"outline": True}))
        assert len(outlined.splitlines()) > 150
        hits = text_of(await session.call_tool("read_cells", {"search": r"value_7\d "}))
        assert len(hits.splitlines()) == 10
        assert hits.startswith("cell 71 (")
        slow = await session.call_tool("read_cells", {"search": "(x+x+)+y"})
        assert "took longer than 5 s" in text_of(slow)
        wrong = await session.call_tool("read_cells", {"search": "("})
        assert "is not a regular expression" in text_of(wrong)
        part = text_of(await session.call_tool("read_cells", {"start": 10, "end": 12}))
        assert "x" * 300 in part


@pytest.mark.thorough
async def test_texts_of_variables_are_contents(mcp_connect, book, stored, jp_root_dir) -> None:
    kernel = await book(
        "import pandas as pd\nreport = 'one\\ntwo\\n'\ndata = b'three\\n'\n"
        "source = 'print(6 * 7)'\ndf = pd.DataFrame({'a': [1]})"
    )
    async with mcp_connect(kernel) as session:

        async def call(tool: str, **arguments) -> str:
            called = await session.call_tool(tool, arguments)
            return text_of(called)

        await call("run_cell", cell=0)
        await call("write", path="report.txt", content="variable:report")
        assert (jp_root_dir / "report.txt").read_text() == "one\ntwo\n"
        await call("edit", command="create", path="data.txt", file_text="variable:data")
        assert (jp_root_dir / "data.txt").read_text() == "three\n"
        await call("insert_cell", source="variable:source")
        assert stored()[1].source == "print(6 * 7)"
        refused = await call("write", path="df.csv", content="variable:df")
        assert refused == (
            "df is no text but a DataFrame. Save it to a file with variables and save_to"
        )
        put_call = {"command": "put", "path": "tables/df.csv", "file": "variable:df"}
        called = await session.call_tool("store", put_call)
        assert not called.is_error
        put = text_of(called)
        assert put.startswith("Put df to tables/df.csv (")
        await call("store", command="get", path="tables/df.csv", file="copy.csv")
        assert (jp_root_dir / "copy.csv").read_text() == "a\n1\n"
        assert "There is no variable" in await call("write", path="x", content="variable:nothing")


@pytest.mark.thorough
async def test_long_outputs_are_files(mcp_connect, book, jp_serverapp) -> None:
    kernel = await book("for n in range(40_000): print('line', n)")
    async with mcp_connect(kernel) as session:

        async def kept(tool: str, **arguments) -> str:
            shown = text_of(await session.call_tool(tool, arguments))
            (line,) = [line for line in shown.splitlines() if "The whole output is in" in line]
            return line.split(" in ")[1].split(":")[0]

        path = await kept("run_cell", cell=0)
        part = await session.call_tool("read", {"path": path, "start": 30_000, "end": 30_002})
        assert "line 30000" in text_of(part)
        changed = text_of(await session.call_tool("changes", {"command": "files"}))
        assert "book.ipynb" in changed
        assert path not in changed
        assert Path(await kept("read_cells")).read_text() == Path(path).read_text().rstrip("\n")
        assert await kept("run_ipython", code="for n in range(40_000): print('line', n)") == path
    await jp_serverapp.kernel_manager.shutdown_kernel(kernel)
    assert not Path(path).exists()


@pytest.mark.thorough
async def test_the_output_so_far_of_a_persons_cell_is_seen(
    mcp_connect, book, jp_serverapp, stored
) -> None:
    kernel = await book("1 + 1", LOOP)
    manager = jp_serverapp.kernel_manager.get_kernel(kernel)
    client = manager.client()
    client.start_channels()
    try:
        async with mcp_connect(kernel) as session:
            await session.call_tool("run_ipython", {"code": "1"})
            client.execute(LOOP)
            async with asyncio.timeout(60):
                shown = ""
                while "step 3" not in shown:
                    shown = text_of(await session.call_tool("read_cells", {}))
            assert "[Running for" in shown
            assert "step 0" in shown
            assert shown.index("step 3") > shown.index("losses = []")
            outline = text_of(await session.call_tool("read_cells", {"outline": True}))
            assert "running" in outline.splitlines()[-1]
            await session.call_tool("kernel", {"command": "interrupt"})
            async with asyncio.timeout(60):
                while "[Running for" in shown:
                    shown = text_of(await session.call_tool("read_cells", {}))
    finally:
        client.stop_channels()


async def test_an_agent_has_its_turn_back_behind_a_persons_cell(
    mcp_connect, book, jp_serverapp, monkeypatch
) -> None:
    for module in ("action_tools", "cell_runs"):
        monkeypatch.setattr(f"oh_jupyter.mcp_tools.{module}.BEGIN_SECONDS", 0.5)
    kernel = await book("ran = 'by run_cell'")
    client = jp_serverapp.kernel_manager.get_kernel(kernel).client()
    client.start_channels()
    try:
        async with mcp_connect(kernel) as session:
            await session.call_tool("run_ipython", {"code": "ran = None"})
            client.execute(LOOP)
            state = {}
            async with asyncio.timeout(60):
                while not state.get("cell"):
                    status = await session.call_tool("kernel", {"command": "status"})
                    state = json.loads(text_of(status))
            for tool, arguments in (
                ("run_ipython", {"code": "ran = 'by run_ipython'"}),
                ("run_cell", {"cell": 0}),
                ("insert_cell", {"source": "ran = 'by insert_cell'", "run": True}),
            ):
                withdrawn = await session.call_tool(tool, arguments)
                assert withdrawn.is_error
                assert (
                    "It did not begin within 0.5 s and was withdrawn: it will not run"
                    in text_of(withdrawn)
                )
                assert "(by the person, for " in text_of(withdrawn)
                assert "s: import time)" in text_of(withdrawn)
            stays = await session.call_tool("run_cell", {"cell": 0, "wait": 1})
            assert "Waits for another cell" in text_of(stays)
            await session.call_tool("kernel", {"command": "interrupt"})
            done = await session.call_tool("run_cell", {"cell": 0, "wait": 60})
            assert not done.is_error
            seen = await session.call_tool("run_ipython", {"code": "ran"})
            assert text_of(seen).startswith("'by run_cell'")
    finally:
        client.stop_channels()


async def test_an_agent_has_its_turn_back_behind_another_run(
    mcp_connect, book, monkeypatch
) -> None:
    monkeypatch.setattr("oh_jupyter.mcp_tools.cell_runs.BEGIN_SECONDS", 0.5)
    kernel = await book(LOOP, "ran = True")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_cell", {"cell": 0, "wait": 0})
        withdrawn = await session.call_tool("run_cell", {"cell": 1})
        assert withdrawn.is_error
        assert "Another run of book.ipynb is at cell 1 of 1, for " in text_of(withdrawn)
        await session.call_tool("kernel", {"command": "interrupt"})
        await session.call_tool("run_cell", {"cell": 0, "wait": 0})
        await session.call_tool("kernel", {"command": "interrupt"})
        seen = await session.call_tool("run_ipython", {"code": "'ran' in globals()"})
        assert text_of(seen).startswith("False")


async def test_an_interrupt_reaches_a_cell_that_is_on_its_way(
    mcp_connect, book, monkeypatch
) -> None:
    requested, run = asyncio.Event(), Kernel.run_cell
    requested.set()

    async def slowly(*args: Any, **options: Any) -> Any:
        if requested.is_set():
            return await run(*args, **options)
        requested.set()
        return await asyncio.Event().wait()

    monkeypatch.setattr(Kernel, "run_cell", slowly)
    kernel = await book("ran = True")
    async with mcp_connect(kernel) as session:
        await session.call_tool("run_ipython", {"code": "pass"})
        requested.clear()
        await session.call_tool("run_cell", {"cell": 0, "wait": 0})
        await requested.wait()
        stopped = await session.call_tool("kernel", {"command": "interrupt"})
        assert text_of(stopped).startswith("Stopped the run before its next 1 cell.")
        seen = await session.call_tool("run_ipython", {"code": "'ran' in globals()"})
        assert text_of(seen).startswith("False")
        again = await session.call_tool("run_cell", {"cell": 0})
        assert not again.is_error
        seen = await session.call_tool("run_ipython", {"code": "ran"})
        assert text_of(seen).startswith("True")


LONG_LOOP = """\
import time
for n in range(40_000):
    print("line", n)
while True:
    time.sleep(0.1)"""


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["agent", "person"])
async def test_the_output_so_far_has_its_first_and_last_lines(
    mcp_connect, book, jp_serverapp, by: str
) -> None:
    kernel = await book(LONG_LOOP)
    client = jp_serverapp.kernel_manager.get_kernel(kernel).client()
    client.start_channels()
    try:
        async with mcp_connect(kernel) as session:

            async def call(tool: str, **arguments: object) -> str:
                return text_of(await session.call_tool(tool, arguments))

            await call("run_ipython", code="1")
            if by == "agent":
                assert "It continues" in await call("run_cell", cell=0, wait=0)
            else:
                client.execute(LONG_LOOP)
            shown = ""
            async with asyncio.timeout(90):
                while "line 39999" not in shown:
                    shown = await call("read_cells")
            assert "line 0\nline 1\n" in shown
            assert len(shown) < 6_500
            path = re.search(r"The output so far is in (\S+): open parts of it with read", shown)
            assert path
            assert "line 20000" in await call("read", path=path[1], start=20_000, end=20_001)
            assert "Interrupted" in await call("kernel", command="interrupt")
    finally:
        client.stop_channels()


@pytest.mark.thorough
async def test_cleared_outputs_come_back(mcp_connect, book, stored) -> None:
    outputs = [new_output("stream", text="of the person\n")]
    kernel = await book(new_code_cell("print(1)", outputs=outputs, execution_count=7))
    async with mcp_connect(kernel) as session:
        before = stored()
        await session.call_tool("run_ipython", {"code": "1"})  # loads oh_jupyter
        await session.call_tool("kernel", {"command": "clear_outputs"})
        assert stored()[0].outputs == []
        undone = await session.call_tool("changes", {"command": "rewind"})
        assert not undone.is_error, text_of(undone)
        assert stored() == before
