"""Draft edits as Actions: files, ranges, and the model that is asked in doubt.

No model can be had in a test: an HTTP server on this machine stands for one. It speaks
OpenAI's chat API and answers with what the test wrote down for it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from oh_jupyter.config import Settings
from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.draft.edit import closest_chunks
from oh_jupyter.editor.draft.model import updated_code
from oh_jupyter.editor.file_actions import edit_file
from oh_jupyter.events import ErrorObservation, FileEditAction, FileEditObservation, Observation

CODE = "import os\n\n\ndef first():\n    return 1\n\n\ndef second():\n    return 2\n"


class ScriptedModel(ThreadingHTTPServer):
    """Stands for a model: gives the next reply of a list to each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Chat)
        self.replies: list[str] = []
        self.requests: list[dict] = []
        self.keys: list[str] = []
        self.settings = Settings(
            draft_model="scripted",
            draft_base_url=f"http://127.0.0.1:{self.server_port}/v1",
            draft_api_key="key-of-the-test",
        )


class _Chat(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers["Authorization"])
        has_reply = self.path == "/v1/chat/completions" and bool(self.server.replies)
        text = self.server.replies.pop(0) if has_reply else ""
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
        }
        data = json.dumps(answer if has_reply else {"error": {"message": "no reply left"}}).encode()
        self.send_response(200 if has_reply else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    server = ScriptedModel()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def draft(tmp_path):
    """Carry out a draft edit of a file."""
    editor = FileEditor(workspace_root=tmp_path, history_dir=tmp_path / "history")

    def edit(path, content: str, settings: Settings | None = None, **where: int) -> Observation:
        action = FileEditAction(str(path), content=content, impl_source="llm_based_edit", **where)
        return edit_file(action, cwd=str(tmp_path), editor=editor, settings=settings)

    edit.editor = editor
    return edit


@pytest.fixture
def code(tmp_path):
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return path


def test_a_file_that_is_not_there_is_made(draft, tmp_path):
    observation = draft("new/poem.txt", "\nroses\nviolets\n\n")
    assert isinstance(observation, FileEditObservation)
    assert (tmp_path / "new/poem.txt").read_text() == "roses\nviolets\n"
    assert observation.prev_exist is False
    assert observation.old_content == ""
    assert observation.new_content == "roses\nviolets\n"
    assert observation.content == observation.diff
    assert "+roses\n+violets" in observation.diff
    assert observation.impl_source == "llm_based_edit"


def test_a_draft_is_merged_and_can_be_undone(draft, code):
    observation = draft(code, "# ... existing code ...\ndef second():\n    return 22\n")
    after = CODE.replace("return 2\n", "return 22\n")
    assert code.read_text() == after
    assert (observation.prev_exist, observation.old_content, observation.new_content) == (
        True,
        CODE,
        after,
    )
    assert observation.diff == f"--- {code}\n+++ {code}\n@@ -9 +9 @@\n-    return 2\n+    return 22"
    draft.editor(command="undo_edit", path=code)
    assert code.read_text() == CODE


def test_a_range_is_counted_from_one_and_includes_its_end(draft, code):
    draft(code, "def first():\n    return 11", start=4, end=5)
    assert code.read_text() == CODE.replace("return 1\n", "return 11\n")
    draft(code, "import sys", start=1, end=1)
    assert code.read_text().startswith("import sys\n\n\ndef first")


def test_a_draft_without_markers_replaces_its_range(draft, tmp_path):
    code = tmp_path / "values.py"
    code.write_text("import os\nx = 0\n")
    draft(code, "x = 1\ny = 2\n")
    assert code.read_text() == "x = 1\ny = 2\n"
    draft(code, "y = 3", start=2)
    assert code.read_text() == "x = 1\ny = 3\n"


@pytest.mark.parametrize("text", ["a\nb\n", "a\nb"])
def test_appending_adds_no_empty_line(draft, tmp_path, text):
    path = tmp_path / "a.txt"
    path.write_text(text)
    for line in ("c", "d\n"):
        draft(path, line, start=-1)
    assert path.read_text().rstrip("\n") == "a\nb\nc\nd"
    assert path.read_text().count("\n\n") == 0


def test_editing_again_and_again_does_not_make_the_file_grow(draft, code):
    for number in range(5):
        draft(code, f"# ... existing code ...\ndef second():\n    return {number}0\n")
    assert code.read_text() == CODE.replace("return 2\n", "return 40\n")


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (0, -1, "start must be >= 1 and <=10"),
        (11, -1, "Invalid range for editing: start=11, end=-1, total lines=10. start must"),
        (5, 4, "start <= end"),
        (1, 11, "end must be >= 1 and <= 10"),
        (-1, 0, "end must be >= 1"),
    ],
)
def test_bad_ranges(draft, code, start, end, text):
    observation = draft(code, "x", start=start, end=end)
    assert isinstance(observation, ErrorObservation)
    assert text in observation.content
    assert code.read_text() == CODE


def test_more_than_301_lines_are_too_many(draft, tmp_path):
    path = tmp_path / "long.py"
    path.write_text("".join(f"value_{number} = {number}\n" for number in range(1000)))
    observation = draft(path, "value_500 = 1\nvalue_501 = 1\n", start=100, end=401)
    assert isinstance(observation, ErrorObservation)
    assert "Got (L100-L401) 302 lines." in observation.content
    assert observation.content.count("[begin relevant snippet") == 3
    assert "REDUCE the range" in observation.content
    assert isinstance(draft(path, "one = 1", start=100, end=400), FileEditObservation)


def test_bytes_outside_the_edit_stay(draft, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffalpha\r\nbeta\r\ngamma  \r\ndelta \xe9t\xe9".encode())
    draft(path, "# ... existing code ...\nbeta\nnew\ngamma  \n# no changes after")
    assert path.read_bytes() == (
        "\ufeffalpha\r\nbeta\r\nnew\r\ngamma  \r\ndelta \xe9t\xe9".encode()
    )
    path.write_bytes("caf\xe9 un\ncaf\xe9 deux\ncaf\xe9 trois\n".encode("cp1252"))
    observation = draft(path, "\u4e2d", start=2, end=2)
    assert isinstance(observation, ErrorObservation)
    assert "has no character" in observation.content


def test_without_a_model_doubt_is_refused_with_the_closest_places(draft, code):
    observation = draft(
        code, "# ... existing code ...\ndef second():\n    return 22\n# ... existing code ..."
    )
    assert isinstance(observation, ErrorObservation)
    assert "was not merged" in observation.content
    assert "`return 22`, is not in the file" in observation.content
    assert "8|def second():" in observation.content
    assert "draft_model" in observation.content
    assert code.read_text() == CODE


def test_a_merge_that_breaks_the_syntax_is_doubtful(draft, code):
    observation = draft(code, "# ... existing code ...\ndef second():\n  (return 22\n")
    assert "would break the file: SyntaxError in line 9" in observation.content
    assert code.read_text() == CODE
    path = code.with_suffix(".json")
    path.write_text('{\n  "one": 1,\n  "two": 2\n}\n')
    observation = draft(path, '{\n  "one": 1,,\n  "two": 2\n# ... existing code ...')
    assert "would break the file: Line 2" in observation.content, observation.content


def test_a_name_that_is_not_there_yet_is_no_reason_to_doubt(draft, code):
    draft(code, "# ... existing code ...\ndef second():\n    return soon\n")
    assert code.read_text() == CODE.replace("return 2\n", "return soon\n")


@pytest.mark.parametrize("content", ["", "\n", "#EDIT: nothing\n"])
def test_an_empty_draft_is_refused(draft, code, content):
    assert isinstance(draft(code, content), ErrorObservation)
    assert code.read_text() == CODE


def test_files_that_cannot_be_edited(draft, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\0\1\2\xff" * 100)
    assert "binary" in draft("a.bin", "x").content
    assert isinstance(draft(tmp_path, "x"), ErrorObservation)
    notebook = tmp_path / "a.ipynb"
    notebook.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    assert isinstance(draft(notebook, "no json"), ErrorObservation)
    assert notebook.read_text().startswith('{"cells"')


DOUBT = "# ... existing code ...\ndef second():\n    return 22\n# ... existing code ..."


@pytest.mark.thorough
def test_one_function_in_a_draft_does_not_delete_the_others(draft, code, model):
    one = "def second():\n    return 22\n"
    observation = draft(code, one)
    assert isinstance(observation, ErrorObservation)
    assert code.read_text() == CODE
    for what in ("would delete `first`", "existing code", "`start` and `end`", "str_replace"):
        assert what in observation.content
    after = CODE.replace("return 2\n", "return 22\n")
    model.replies = [f"<updated_code>{after}</updated_code>"]
    draft(code, one, model.settings)
    assert code.read_text() == after
    draft(code, "def second():\n    return 222", start=8, end=9)
    assert code.read_text() == CODE.replace("return 2\n", "return 222\n")


def test_in_doubt_the_model_is_asked(draft, code, model):
    after = CODE.replace("return 2\n", "return 22\n")
    model.replies = [f"Sure.\n<updated_code>\n#EDIT: second\n{after}</updated_code>"]
    observation = draft(code, DOUBT, model.settings)
    assert isinstance(observation, FileEditObservation)
    assert code.read_text() == after
    (request,) = model.requests
    assert request["model"] == "scripted"
    (message,) = request["messages"]
    assert message["role"] == "user"
    assert f"<original_code>\n{CODE.rstrip()}\n</original_code>" in message["content"]
    assert f"<update_snippet>\n{DOUBT}\n</update_snippet>" in message["content"]
    assert model.keys == ["Bearer key-of-the-test"]


def test_only_the_range_goes_to_the_model(draft, code, model):
    model.replies = ["<updated_code>def second():\n    return 22</updated_code>"]
    draft(code, DOUBT, model.settings, start=8, end=9)
    assert "first" not in model.requests[0]["messages"][0]["content"]
    assert code.read_text() == CODE.replace("return 2\n", "return 22\n")


def test_a_clear_draft_needs_no_model(draft, code, model):
    draft(code, "# ... existing code ...\ndef second():\n    return 22\n", model.settings)
    assert model.requests == []


def test_three_answers_without_code_are_enough(draft, code, model):
    model.replies = ["no", "<updated_code>cut", f"<updated_code>{DOUBT}</updated_code>", "never"]
    observation = draft(code, DOUBT, model.settings)
    assert observation.content.startswith("Failed to get new file contents.")
    assert model.replies == ["never"]
    assert code.read_text() == CODE


def test_the_model_repairs_its_mistakes(draft, code, model):
    broken = CODE.replace("return 2\n", "return (22\n")
    good = CODE.replace("return 2\n", "return 22\n")
    model.replies = [f"<updated_code>\n{text}</updated_code>" for text in (broken, broken, good)]
    observation = draft(code, DOUBT, model.settings)
    assert isinstance(observation, FileEditObservation)
    assert code.read_text() == good
    repair = model.requests[1]["messages"][0]["content"]
    assert "Line 9" in repair
    assert "return (22" in repair
    assert len(model.requests) == 3


def test_a_broken_draft_is_not_written_and_reported(draft, code, model):
    broken = CODE.replace("return 2\n", "return (22\n")
    model.replies = [f"<updated_code>\n{broken}</updated_code>"] * 7
    observation = draft(code, DOUBT, model.settings)
    assert isinstance(observation, ErrorObservation)
    assert "1 lint errors found" in observation.content
    assert "+    return (22" in observation.content
    assert "NOT applied" in observation.content
    assert code.read_text() == CODE
    assert len(model.requests) == 6  # the merge and five rounds


UNDEFINED = "# ... existing code ...\ndef second():\n    return missing\n"


def test_a_merged_draft_is_linted_where_edits_are(draft, code, monkeypatch):
    linting = Settings(enable_auto_lint=True)
    assert isinstance(draft(code, UNDEFINED), FileEditObservation)
    assert "missing" in code.read_text()
    code.write_text(CODE)
    observation = draft(code, UNDEFINED, linting)
    assert isinstance(observation, ErrorObservation)
    assert "F821 undefined name 'missing'" in observation.content
    assert "NOT applied" in observation.content
    assert isinstance(draft(code, UNDEFINED, enable_linting=True), ErrorObservation)
    monkeypatch.setenv("ENABLE_AUTO_LINT", "true")
    assert isinstance(draft(code, "print(missing)", start=-1), ErrorObservation)
    assert code.read_text() == CODE


def test_a_merged_draft_with_findings_is_repaired_by_the_model(draft, code, model):
    good = CODE.replace("return 2\n", "return os\n")
    model.replies = [f"<updated_code>\n{good}</updated_code>"]
    settings = replace(model.settings, enable_auto_lint=True)
    assert isinstance(draft(code, UNDEFINED, settings), FileEditObservation)
    assert code.read_text() == good
    assert "undefined name 'missing'" in model.requests[0]["messages"][0]["content"]


def test_without_auto_lint_a_model_may_use_names_that_are_defined_later(draft, code, model):
    later = CODE.replace("return 2\n", "return missing\n")
    model.replies = [f"<updated_code>\n{later}</updated_code>"] * 2
    assert isinstance(draft(code, DOUBT, model.settings), FileEditObservation)
    assert code.read_text() == later
    assert len(model.requests) == 1


def test_a_file_that_changed_while_the_model_thought_is_not_overwritten(draft, code, model):
    good = CODE.replace("return 2\n", "return 22\n")
    model.replies = [f"<updated_code>\n{good}</updated_code>"] * 3
    real_append = model.requests.append

    class Meddling(list):
        def append(self, request):
            code.write_text(code.read_text() + "# theirs\n")
            real_append(request)

    model.requests = Meddling()
    observation = draft(code, DOUBT, model.settings)
    assert "was changed while the draft was merged" in observation.content
    assert code.read_text() == CODE + "# theirs\n" * 3


def test_a_model_that_cannot_be_reached(draft, code, model):
    model.replies = []
    observation = draft(code, DOUBT, model.settings)
    assert "'scripted' at http://127.0.0.1" in observation.content
    assert "failed: Error code: 404" in observation.content
    assert "key-of-the-test" not in observation.content
    assert code.read_text() == CODE


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("<updated_code>a</updated_code>", "a"),
        ("<updated_code>\na\n</updated_code>", "a"),
        ("<updated_code>\n\na\n\n</updated_code>", "\na\n"),
        ("<updated_code>\n```python\na\n```\n</updated_code>", "a"),
        ("<updated_code>#EDIT: why\na</updated_code> <updated_code>b</updated_code>", "a"),
        ("<updated_code>a", None),
        ("a", None),
        ("<updated_code>a\n# ... existing code ...</updated_code>", None),
    ],
)
def test_reading_answers(reply, code):
    assert updated_code(reply, "original") == code


def test_the_closest_chunks():
    lines = [f"line {number}" for number in range(100)]
    lines[50] = "def wanted(argument): return argument"
    best, *rest = closest_chunks(lines, "def wanted(argument): return argument")
    assert (best.first, best.last) == (41, 60)
    assert len(rest) == 2
    assert closest_chunks(["abc"], "abc")[0].similarity == 1.0
    assert closest_chunks([""], "abc")[0].similarity == 0.0
