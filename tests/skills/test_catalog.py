import importlib
import logging
import subprocess
import sys

import pytest

from oh_jupyter import skills
from oh_jupyter.errors import SkillError
from oh_jupyter.skills import catalog

FILE_OPS = [
    "open_file",
    "goto_line",
    "scroll_down",
    "scroll_up",
    "search_dir",
    "search_file",
    "find_file",
]


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A package on the path that offers entry points."""

    def offer(module: str, points: str) -> None:
        (tmp_path / "extra_skills.py").write_text(module)
        info = tmp_path / "extra_skills-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-skills\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[oh_jupyter.skills]\n{points}\n")
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()

    yield offer
    sys.modules.pop("extra_skills", None)


def test_our_own_skills_are_available():
    names = list(skills.available())
    assert names[:7] == FILE_OPS
    assert names[-1] == "file_editor"


def test_a_skill_without_its_package_is_left_out(monkeypatch):
    find_spec = catalog.find_spec
    missing = {"pypdf", "pptx"}
    monkeypatch.setattr(
        catalog, "find_spec", lambda name: None if name in missing else find_spec(name)
    )
    names = skills.available()
    assert "parse_pdf" not in names
    assert "parse_pptx" not in names
    assert "file_editor" in names


def test_skills_of_other_packages(offered):
    offered("def greet(name: str) -> None:\n    'Say hello.'\n", "greet = extra_skills:greet")
    skill = skills.registry()["greet"]
    assert (skill.signature, skill.docstring) == ("(name: str) -> None", "Say hello.")


def test_broken_skills_of_other_packages_do_no_harm(offered, caplog):
    offered("import not_installed\n", "absent = extra_skills:absent")
    with caplog.at_level(logging.INFO):
        assert "absent" not in skills.available()
    assert caplog.records == []
    sys.modules.pop("extra_skills", None)


def test_a_defect_in_another_package_is_logged(offered, caplog):
    offered("1 / 0\n", "bad = extra_skills:bad")
    assert "bad" not in skills.available()
    assert "Skill bad cannot be loaded from extra_skills:bad" in caplog.text


def test_registering_a_function(forget_registered_skills):
    @skills.register
    def shout(text: str, *, times: int = 1) -> None:
        """Print loudly.

        Args:
            text: What.
        """

    assert skills.available()["shout"] is shout
    assert skills.documentation().endswith(
        "shout(text: str, *, times: int = 1) -> None:\n    Print loudly.\n    Args:\n"
        "    text: What.\n\n"
    )
    with pytest.raises(TypeError, match="a function with a name"):
        skills.register(lambda: None)
    with pytest.raises(TypeError):
        skills.register("shout")


def test_the_documentation_is_in_the_format_of_the_reference():
    documentation = skills.documentation()
    assert documentation.startswith(
        "open_file(path: str, line_number: int | None = 1, context_lines: int | None = 100)"
        " -> None:\n    Open a file"
    )
    assert "\n\ngoto_line(line_number: int) -> None:\n    Show" in documentation
    assert "file_editor(" not in documentation
    assert "\n\n\n" not in documentation


def test_star_import_brings_exactly_the_available_skills(forget_registered_skills):
    def added() -> None:
        """Do nothing."""

    skills.register(added)
    namespace = {}
    exec("from oh_jupyter.skills.agentskills import *", namespace)
    namespace.pop("__builtins__")
    assert namespace == skills.available()
    assert "added" in namespace
    exec("from oh_jupyter.skills.agentskills import DOCUMENTATION", namespace)
    assert namespace["DOCUMENTATION"] == skills.documentation()
    with pytest.raises(ImportError):
        exec("from oh_jupyter.skills.agentskills import no_such_skill", namespace)


def test_nothing_heavy_is_imported():
    program = (
        "import sys, oh_jupyter.skills as s; s.available(); s.documentation()\n"
        "heavy = {'pypdf', 'docx', 'pptx', 'pylatexenc', 'charset_normalizer', 'markitdown',\n"
        "         'tree_sitter', 'openai', 'cv2'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_adding_and_removing_by_name(forget_registered_skills, offered):
    offered("def greet(name: str) -> str:\n    'Say hello.'\n    return f'hello {name}'\n", "")
    assert skills.add("extra_skills:greet") == "greet"
    assert skills.find("greet")("Ada") == "hello Ada"
    skills.remove("greet")
    assert "greet" not in skills.available()
    skills.remove("scroll_up")
    assert "scroll_up()" not in skills.documentation()
    assert skills.add("scroll_up") == "scroll_up"
    assert "scroll_up" in skills.available()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module_at_all:f", "No module named"),
        ("os:no_such_function", "no attribute"),
        ("os:sep", "a function with a name"),
        ("json", "Write module:function"),
        (":f", "cannot be added"),
    ],
)
def test_invalid_skills(forget_registered_skills, target, message):
    with pytest.raises(SkillError, match=message):
        skills.add(target)


def test_a_name_that_is_no_skill_is_answered_with_the_closest():
    with pytest.raises(SkillError, match="Did you mean: open_file"):
        skills.find("openfile")
    with pytest.raises(SkillError, match="Did you mean"):
        skills.remove("openfile")
    with pytest.raises(SkillError, match="no skill 'qqq'"):
        skills.schema("qqq")


def test_the_schema_of_a_skill():
    schema = skills.schema("open_file")
    assert schema["required"] == ["path"]
    assert schema["properties"]["line_number"]["default"] == 1
    assert schema["properties"]["path"]["description"].startswith("The file")
    for name in skills.available():
        assert skills.schema(name)["type"] == "object"


def test_repository_skills_need_their_grammar(monkeypatch):
    assert "search_code_snippets" in skills.available()
    find_spec = catalog.find_spec
    monkeypatch.setattr(
        catalog, "find_spec", lambda name: None if name == "tree_sitter_python" else find_spec(name)
    )
    assert "search_code_snippets" not in skills.available()
