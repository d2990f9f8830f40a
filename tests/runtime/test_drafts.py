"""Draft edits through a runtime: the same Action as through every door."""

from __future__ import annotations

import pytest

from oh_jupyter.config import load_settings
from oh_jupyter.errors import ConfigError
from oh_jupyter.events import FileEditAction
from oh_jupyter.events.wire import action_from_wire, to_wire


def test_a_draft_is_merged_written_and_undone(runtime, tmp_path):
    path = tmp_path / "code.py"
    path.write_text("import os\n\n\ndef run():\n    return os.name\n")
    action = action_from_wire(
        {
            "action": "edit",
            "args": {
                "path": "code.py",
                "content": "# ... existing code ...\ndef run():\n    return os.sep\n",
                "impl_source": "llm_based_edit",
            },
        }
    )
    wire = to_wire(runtime.submit_action(action).result(60))
    assert wire["observation"] == "edit"
    assert wire["extras"]["impl_source"] == "llm_based_edit"
    assert wire["extras"]["prev_exist"] is True
    assert wire["extras"]["new_content"] == path.read_text()
    assert wire["content"] == wire["extras"]["diff"]
    assert "os.sep" in path.read_text()
    runtime.submit_action(FileEditAction(str(path), "undo_edit")).result(60)
    assert "os.name" in path.read_text()


def test_doubt_without_a_model_is_an_error(runtime, tmp_path):
    path = tmp_path / "code.py"
    path.write_text("def run():\n    return 1\n")
    draft = "def run():\n    return 2\n# ... existing code ...\n"
    action = FileEditAction("code.py", content=draft, impl_source="llm_based_edit")
    wire = to_wire(runtime.submit_action(action).result(60))
    assert wire["observation"] == "error"
    assert "c.OhJupyter.draft_model" in wire["content"]
    assert path.read_text() == "def run():\n    return 1\n"


def test_the_settings_of_the_model_come_from_the_environment(tmp_path):
    environ = {
        "OH_JUPYTER_DRAFT_MODEL": "small",
        "OH_JUPYTER_DRAFT_BASE_URL": "http://localhost:1/v1",
        "OH_JUPYTER_DRAFT_API_KEY": "key",
        "OH_JUPYTER_DRAFT_CORRECT_NUM": "2",
    }
    settings = load_settings(environ=environ)
    assert (settings.draft_model, settings.draft_base_url) == ("small", "http://localhost:1/v1")
    assert (settings.draft_api_key, settings.draft_correct_num) == ("key", 2)
    with pytest.raises(ConfigError, match="OH_JUPYTER_DRAFT_CORRECT_NUM"):
        load_settings(environ={"OH_JUPYTER_DRAFT_CORRECT_NUM": "many"})
