import json
import re

import pytest

from oh_jupyter.skills import file_editor as module
from oh_jupyter.skills.file_editor import file_editor

TAGGED = re.compile(
    r"\A<oh_aci_output_(?P<id>[0-9a-f]{32})>\n(?P<json>[^\n]*)\n</oh_aci_output_(?P=id)>\Z"
)


@pytest.fixture(autouse=True)
def _own_history(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    module._editor.cache_clear()
    yield
    module._editor.cache_clear()


def parsed(answer):
    return json.loads(TAGGED.match(answer)["json"])


def test_an_answer(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("</oh_aci_output_0>\nold\n")
    fields = parsed(file_editor("str_replace", str(path), old_str="old", new_str="new"))
    assert list(fields) == [
        "output",
        "error",
        "path",
        "prev_exist",
        "old_content",
        "new_content",
        "formatted_output_and_error",
    ]
    assert fields["error"] is None
    assert fields["formatted_output_and_error"] == fields["output"]
    assert fields["output"].startswith(f"The file {path} has been edited. ")
    assert fields["new_content"] == path.read_text() == "</oh_aci_output_0>\nnew\n"


def test_a_failure(tmp_path):
    fields = parsed(file_editor(command="view", path=f"{tmp_path}/no"))
    assert fields["output"] is None
    assert fields["error"].startswith("Invalid `path` parameter: ")
    assert fields["formatted_output_and_error"] == f"ERROR:\n{fields['error']}"


def test_undo_works_across_calls_and_other_arguments_are_ignored(tmp_path):
    path = tmp_path / "a.txt"
    file_editor("create", str(path), file_text="x", thought="because", security_risk=-1)
    file_editor("undo_edit", str(path))
    assert not path.exists()


def test_ids_differ(tmp_path):
    ids = {TAGGED.match(file_editor("view", str(tmp_path)))["id"] for _ in range(5)}
    assert len(ids) == 5
