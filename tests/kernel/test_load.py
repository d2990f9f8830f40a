"""Immediate and lazy effects of ``%load_ext oh_jupyter``."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from oh_jupyter.events import OBSERVATIONS
from oh_jupyter.kernel.extension import OBSERVATION_TYPES
from oh_jupyter.kernel.magics import MAGICS
from oh_jupyter.testing import wait_until

LOAD = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext oh_jupyter")
def modules():
    return sorted(name for name in sys.modules if name.startswith("oh_jupyter"))
"""


def run_python(directory: Path, code: str, **variables: str) -> str:
    """Load the extension in a shell of its own, run the code and return the output."""
    environment = {**os.environ, "HOME": str(directory), "IPYTHONDIR": str(directory), **variables}
    done = subprocess.run(
        [sys.executable, "-c", LOAD + code],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=directory,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_loading_imports_no_room_and_starts_no_thread(tmp_path: Path) -> None:
    code = "import threading\nprint(*modules(), *(t.name for t in threading.enumerate()))"
    words = run_python(tmp_path, code).split()
    rooms = ("agents", "browser", "editor", "events", "plugins", "runtime", "shell", "storage")
    assert not [word for word in words for room in rooms if word.startswith(f"oh_jupyter.{room}")]
    assert not [word for word in words if word.startswith("oh-")]


def test_the_first_use_works_where_the_kernel_was_when_it_was_loaded(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    code = "import os\nos.chdir('elsewhere')\nshell.run_cell('print(oh.run(\"pwd\").content)')"
    assert run_python(tmp_path, code).strip() == str(tmp_path)


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"FILE_STORE": "no-such-store"}, "no-such-store"),
        ({"OH_JUPYTER_CONFIRMATION": "sometimes"}, "must be one of never, risky, always"),
        ({"OH_JUPYTER_MCP_SERVERS": '[{"name": "x"}]'}, "command must be one word"),
        ({"FILE_STORE_PATH": "a-file/store"}, "a-file"),
        ({"OH_JUPYTER_CELL_OUTPUT_LIMIT": "many"}, "OH_JUPYTER_CELL_OUTPUT_LIMIT"),
    ],
)
def test_invalid_settings_are_reported_at_load(
    tmp_path: Path, variables: dict[str, str], error: str
) -> None:
    (tmp_path / "a-file").touch()
    shown = run_python(tmp_path, "print('oh' in shell.user_ns)", **variables)
    assert error in shown
    assert shown.rstrip().endswith("False")


def test_config_shows_settings_of_every_source(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[core]\nmax_upload_mb = 12.5\n")
    code = (
        "shell.run_cell('%config OhJupyter')\nshell.run_cell('%config OhJupyter.kernel_url=\"x\"')"
    )
    variables = {"NO_CHANGE_TIMEOUT_SECONDS": "7", "OH_JUPYTER_KERNEL_TOKEN": "hidden-from-all"}
    shown = run_python(tmp_path, f"import sys\nsys.stderr = sys.stdout\n{code}", **variables)
    current = dict(zip(shown.split("OhJupyter.")[1:], shown.split("Current: ")[1:], strict=False))
    values = {name.split("=")[0]: value.split("\n")[0] for name, value in current.items()}
    assert values["no_change_timeout_seconds"] == "7.0"
    assert values["max_upload_mb"] == "12.5"
    assert values["workspace_dir"] == repr(str(tmp_path))
    assert "hidden-from-all" not in shown
    assert "OhJupyter.kernel_url was read when" not in shown  # nothing has started yet


@pytest.mark.thorough
def test_an_unusable_setting_is_refused_and_the_loaded_ones_stay(fresh_kernel) -> None:
    fresh_kernel.execute("%oh_run here=1")
    shown = fresh_kernel.execute('%config OhJupyter.confirmation = "sometimes"')
    assert "expected any of ['never', 'risky', 'always'] or None" in shown
    shown = fresh_kernel.execute("%config OhJupyter.checkpoint_variables_mb = -1")
    assert "checkpoint_variables_mb must be a number of at least 0, not -1" in shown
    assert fresh_kernel.execute("oh.settings.checkpoint_variables_mb") == "1024.0"
    assert "no plugin 'nope'" in fresh_kernel.execute('%config OhJupyter.plugins = ["nope"]')
    shown = fresh_kernel.execute('%config OhJupyter.sandbox_hosts = ["pypi", "unknown"]')
    assert "sandbox_hosts has the entry 'unknown', which is no host, address or preset" in shown
    assert fresh_kernel.execute('%config OhJupyter.sandbox_hosts = ["pypi"]') == ""
    assert fresh_kernel.execute("oh.settings.sandbox_hosts") == "('pypi',)"
    late = fresh_kernel.execute('%config OhJupyter.file_store = "memory"')
    assert "OhJupyter.file_store was read when the runtime started" in late
    assert "run %reload_ext oh_jupyter" in late
    assert fresh_kernel.execute("oh.settings.file_store") == "'local'"
    refused = fresh_kernel.execute("%reload_ext oh_jupyter")
    assert refused.startswith("ConfigError: ")
    assert "Nothing was reloaded" in refused
    fresh_kernel.execute("%config OhJupyter.checkpoint_variables_mb = 512")
    fresh_kernel.execute('%config OhJupyter.confirmation = "always"')
    fresh_kernel.execute('%config OhJupyter.plugins = ["agent_skills", "jupyter"]')
    fresh_kernel.execute("import os; os.environ['OH_JUPYTER_MCP_SERVERS'] = '[{\"name\": 1}]'")
    assert "name must be letters" in fresh_kernel.execute("%reload_ext oh_jupyter")
    assert fresh_kernel.execute("%oh_run echo $here").endswith("1")
    fresh_kernel.execute("del os.environ['OH_JUPYTER_MCP_SERVERS']")
    assert fresh_kernel.execute("%reload_ext oh_jupyter") == ""
    assert fresh_kernel.execute("oh.settings.confirmation") == "'always'"


def test_settings_count_from_the_moment_at_which_they_are_set(fresh_kernel) -> None:
    fresh_kernel.execute('%config OhJupyter.file_store = "memory"')
    assert fresh_kernel.execute("oh.settings.file_store") == "'memory'"
    assert fresh_kernel.act("run", command="echo unasked")["content"] == "unasked"
    assert fresh_kernel.execute('%config OhJupyter.confirmation = "always"') == ""
    action = {"action": "run", "args": {"command": "echo asked"}}
    asked = fresh_kernel.send("execute_action", {"action": action})
    waiting = wait_until(lambda: fresh_kernel.ask("confirmations")[1])
    fresh_kernel.execute('%config OhJupyter.confirmation = "never"')
    assert fresh_kernel.act("run", command="echo again")["content"] == "again"
    fresh_kernel.ask("confirm", id=waiting[0]["id"], approve=False, reason="no")
    assert "(The user says: no)" in fresh_kernel.reply(asked)[1]["content"]


def test_a_cells_risks_are_read_with_the_names_of_the_notebook(fresh_kernel) -> None:
    fresh_kernel.execute("import shutil as tools, pathlib; home = pathlib.Path.home()")
    code = "tools.rmtree(home / 'no-such-folder')"
    action = {"action": "run_ipython", "args": {"code": code}}
    asked = fresh_kernel.send("execute_action", {"action": action})
    waiting = wait_until(lambda: fresh_kernel.ask("confirmations")[1])
    assert waiting[0]["reason"].startswith("it removes a whole directory tree: ")
    fresh_kernel.ask("confirm", id=waiting[0]["id"], approve=False)
    assert "rejected by the user" in fresh_kernel.reply(asked)[1]["content"]


@pytest.mark.thorough
def test_a_magic_is_documented_completed_and_found_before_its_first_use(fresh_kernel) -> None:
    reply = fresh_kernel.client.inspect("%oh_run", reply=True, timeout=60)
    text = reply["content"]["data"]["text/plain"]
    assert "Run a command in the shell" in text
    assert "magics/run.py" in text
    reply = fresh_kernel.client.complete("%oh_skills sch", reply=True, timeout=60)
    assert reply["content"]["matches"] == ["schema"]
    assert "oh_browse" in fresh_kernel.execute("%lsmagic")
    fresh_kernel.execute("%unload_ext oh_jupyter")
    reply = fresh_kernel.client.complete("%oh_skills sch", reply=True, timeout=60)
    assert reply["content"]["matches"] == []
    assert "oh_browse" not in fresh_kernel.execute("%lsmagic")


def test_the_first_cell_of_a_magic_has_its_text_as_typed(fresh_kernel) -> None:
    fresh_kernel.execute("%%oh_edit create prompts.txt\n>>> one\n... two\n  three\n")
    assert (fresh_kernel.directory / "prompts.txt").read_text() == ">>> one\n... two\n  three\n"


def test_observations_are_shown_regardless_of_their_first_import(fresh_kernel) -> None:
    code = "from oh_jupyter.events import ErrorObservation\nErrorObservation('made by hand')"
    assert fresh_kernel.execute(code) == "made by hand"


def test_a_request_starts_the_runtime_of_the_announced_generation(fresh_kernel) -> None:
    session, client = fresh_kernel.client.session, fresh_kernel.client
    message = session.msg("kernel_info_request")
    session.send(client.control_channel.socket, message)
    reply, _ = fresh_kernel.reply(message["header"]["msg_id"])
    fields, status = fresh_kernel.ask("status")
    assert fields["generation"] == reply["oh_jupyter"]["generation"]
    assert status["generation"] == fields["generation"]


def test_the_tables_of_lazy_imports_are_complete() -> None:
    names_by_module: dict[str, set[str]] = {}
    for kind in OBSERVATIONS.values():
        names_by_module.setdefault(kind.__module__, set()).add(kind.__name__)
    assert {module: set(names) for module, names in OBSERVATION_TYPES.items()} == names_by_module
    for name, (module, class_name, kinds) in MAGICS.items():
        magics = getattr(import_module(f"oh_jupyter.kernel.magics.{module}"), class_name)
        assert {kind for kind in ("line", "cell") if name in magics.magics[kind]} == set(kinds)
        named = {each for each, entry in MAGICS.items() if entry[1] == class_name}
        assert named == {*magics.magics["line"], *magics.magics["cell"]}
