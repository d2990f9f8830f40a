"""The repository skills, on small repositories made for each test."""

from __future__ import annotations

import os

import pytest

from oh_jupyter.errors import SkillError
from oh_jupyter.skills.repo_ops import (
    explore_tree_structure,
    get_entity_contents,
    search_code_snippets,
)

SHAPES = '''\
"""Shapes."""

import math

from .base import Shape, area_of as measure


class Circle(Shape):
    """A circle."""

    def __init__(self, radius):
        self.radius = check(radius)

    @property
    def area(self):
        def square(x):
            return x * x

        return math.pi * square(self.radius)

    def grow(self):
        return self.area + measure(self)


def check(value):
    return abs(value)
'''
BASE = "class Shape:\n    pass\n\n\ndef area_of(shape):\n    return shape.area\n"
MAIN = """\
from geometry import shapes
from geometry.shapes import Circle


def main():
    return Circle(2).grow()
"""


@pytest.fixture
def repo(tmp_path, monkeypatch):
    root = tmp_path / "repo"
    for path, text in {
        "geometry/__init__.py": "",
        "geometry/shapes.py": SHAPES,
        "geometry/base.py": BASE,
        "main.py": MAIN,
        "tests/test_shapes.py": "def test_circle():\n    assert True\n",
        "docs/readme.md": "# Shapes\n",
        ".git/hook.py": "def hidden(): pass\n",
        "node_modules/lib.py": "def foreign(): pass\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    monkeypatch.setenv("REPO_PATH", str(root))
    return root


def test_the_tree_of_the_repository(repo):
    assert explore_tree_structure(["/"], dependency_type_filter=["contains"]) == (
        "/\n"
        "├── contains ── geometry\n"
        "│               ├── contains ── geometry/__init__.py\n"
        "│               ├── contains ── geometry/base.py\n"
        "│               └── contains ── geometry/shapes.py\n"
        "└── contains ── main.py\n"
        "                └── contains ── main.py:main"
    )


def test_downstream_lists_entities_used_by_one(repo):
    tree = explore_tree_structure(["geometry/shapes.py:Circle"], traversal_depth=1)
    assert tree.splitlines() == [
        "geometry/shapes.py:Circle",
        "├── contains ── geometry/shapes.py:Circle.area",
        "├── contains ── geometry/shapes.py:Circle.grow",
        "├── inherits ── geometry/base.py:Shape",
        "└── invokes ── geometry/shapes.py:check",
    ]
    tree = explore_tree_structure(
        ["main.py"], traversal_depth=1, dependency_type_filter=["imports"]
    )
    assert tree.splitlines() == [
        "main.py",
        "├── imports ── geometry/shapes.py",
        "└── imports ── geometry/shapes.py:Circle",
    ]


def test_upstream_lists_users_of_an_entity(repo):
    tree = explore_tree_structure(["geometry/base.py:area_of"], "upstream", 1)
    assert tree.splitlines() == [
        "geometry/base.py:area_of",
        "├── contains-by ── geometry/base.py",
        "├── imports-by ── geometry/shapes.py",
        "└── invokes-by ── geometry/shapes.py:Circle.grow",
    ]
    tree = explore_tree_structure(["geometry/base.py:Shape"], "upstream", -1, ["class"])
    assert tree.splitlines() == [
        "geometry/base.py:Shape",
        "└── inherits-by ── geometry/shapes.py:Circle",
    ]


def test_both_directions_and_several_entities(repo):
    trees = explore_tree_structure(
        ["geometry/shapes.py:Circle", "main.py:main"], "both", 1, ["class", "function"], ["invokes"]
    )
    assert trees == (
        "geometry/shapes.py:Circle\n"
        "├── invokes ── geometry/shapes.py:check\n"
        "└── invokes-by ── main.py:main\n"
        "\n"
        "main.py:main\n"
        "├── invokes ── geometry/shapes.py:Circle.grow\n"
        "└── invokes ── geometry/shapes.py:Circle"
    )


def test_inner_functions_and_depth(repo):
    tree = explore_tree_structure(["geometry/shapes.py:Circle.area"], traversal_depth=-1)
    assert tree.splitlines() == [
        "geometry/shapes.py:Circle.area",
        "├── contains ── geometry/shapes.py:Circle.area.square",
        "└── invokes ── geometry/shapes.py:Circle.area.square",
    ]
    assert explore_tree_structure(["main.py"], traversal_depth=0) == "main.py"


def test_names_that_do_not_exist(repo):
    text = explore_tree_structure(["geometry/shape.py", "main.py:main"], traversal_depth=0)
    assert text.startswith("main.py:main\n\nThe entity name `geometry/shape.py` is invalid. Based")
    assert "file: `geometry/shapes.py`" in text
    text = explore_tree_structure(["qqq"])
    assert text == (
        "The entity name `qqq` is invalid. There are no possible candidate entities in record."
    )
    assert "Please do not include any test entities." in explore_tree_structure(
        ["tests/test_shapes.py"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"direction": "sideways"}, "Expected one of 'downstream', 'upstream', and 'both'"),
        ({"traversal_depth": -2}, "It must be either -1 or a non-negative integer"),
        ({"entity_type_filter": ["module"]}, "module"),
        ({"dependency_type_filter": ["calls"]}, "calls"),
    ],
)
def test_wrong_arguments(repo, arguments, message):
    with pytest.raises(SkillError, match="nvalid") as caught:
        explore_tree_structure(["/"], **arguments)
    assert message in str(caught.value)


def test_the_contents_of_entities(repo):
    assert get_entity_contents(["geometry/base.py:area_of", "nothing", "main.py"]) == (
        "##Searching for entity `geometry/base.py:area_of`...\n"
        "### Search Result:\n"
        "Found function `geometry/base.py:area_of`.\n"
        "Source: Exact match found for entity name `geometry/base.py:area_of`.\n"
        "```\n"
        "5 | def area_of(shape):\n"
        "6 |     return shape.area\n"
        "```\n"
        "\n"
        "\n"
        "##Searching for entity `nothing`...\n"
        "### Search Result:\n"
        'Invalid name. \nHint: Valid entity name should be formatted as "file_path:QualifiedName" '
        'or just "file_path".\n'
        "\n"
        "##Searching for entity `main.py`...\n"
        "### Search Result:\n"
        "Found file `main.py`.\n"
        "Source: Exact match found for entity name `main.py`.\n"
        "```\n"
        "1 | from geometry import shapes\n"
        "2 | from geometry.shapes import Circle\n"
        "3 | \n"
        "4 | \n"
        "5 | def main():\n"
        "6 |     return Circle(2).grow()\n"
        "```"
    )


def test_decorators_belong_to_their_function(repo):
    text = get_entity_contents(["geometry/shapes.py:Circle.area"])
    assert "14 |     @property\n15 |     def area(self):" in text


def test_searching_by_name(repo):
    text = search_code_snippets(["Circle"])
    assert text.startswith(
        '##Searching for term "Circle"...\n### Search Result:\n'
        "Found class `geometry/shapes.py:Circle`.\n"
        "Source: Match found for entity name `Circle`.\n```\n"
    )
    for term in ("class Circle", "Circle.grow", "circle", "shapes.Circle.grow", "shapes.py"):
        assert "geometry/shapes.py" in search_code_snippets([term]), term
    assert (
        search_code_snippets(["main.py:main"]).splitlines()[2] == "Found function `main.py:main`."
    )
    assert search_code_snippets([str(repo / "main.py")]).splitlines()[2] == "Found file `main.py`."


def test_searching_by_words_works_in_a_small_repository(repo):
    text = search_code_snippets(["square of the radius"])
    assert "Source: Retrieved code content using keyword search (bm25)." in text
    assert "geometry/shapes.py:Circle" in text
    assert search_code_snippets(["zzzz"]) == (
        '##Searching for term "zzzz"...\n### Search Result:\nNo locations found.'
    )


def test_a_match_of_several_terms_is_shown_once(repo):
    text = search_code_snippets(["Circle", "class Circle"])
    assert text.startswith('##Searching for term "Circle", "class Circle"...')
    assert text.count("Found class") == 1


def test_where_to_search(repo):
    assert "No files found for file pattern 'x/*.py'. Will search all files." in (
        search_code_snippets(["check"], file_path_or_pattern="x/*.py")
    )
    text = search_code_snippets(["return"], file_path_or_pattern="main.py")
    assert "geometry" not in text.split("### Search Result:")[1].split("```")[0]
    assert search_code_snippets(["test_circle"]).startswith("No results for test files")


def test_searching_by_line(repo):
    text = search_code_snippets(line_nums=[2, 17], file_path_or_pattern="geometry/shapes.py")
    assert "Found code snippet in file `geometry/shapes.py`." in text
    assert "Found function `geometry/shapes.py:Circle.area.square`." in text
    assert "Source: Retrieved code context including geometry/shapes.py:line 2, 17." in text
    with pytest.raises(SkillError, match="which has 26 lines"):
        search_code_snippets(line_nums=[99], file_path_or_pattern="geometry/shapes.py")
    assert "give the path of a file" in search_code_snippets(line_nums=[1])


def test_a_large_class_is_shown_as_an_outline(repo):
    methods = "".join(f"    def method_{n}(self):\n        return {n}\n\n" for n in range(50))
    (repo / "large.py").write_text(f"class Large:\n{methods}")
    text = search_code_snippets(["Large"])
    assert "Just show the structure of this class due to response length limitations:" in text
    assert "149 |     def method_49(self):" in text
    assert "return 49" not in text
    assert "Hint: Search `large.py:Large` to get the full content if needed." in text
    assert "return 49" in search_code_snippets(["large.py:Large"])


def test_many_entities_of_one_name_are_only_listed(repo):
    for number in range(5):
        (repo / f"mod{number}.py").write_text("def same():\n    pass\n")
    text = search_code_snippets(["same"])
    assert text.count("Found function") == 5
    assert "Hint: Use more detailed query" in text
    assert "```" not in text


def test_the_repository_is_read_again_and_never_written(repo, monkeypatch, tmp_path):
    before = sorted(path for path in repo.rglob("*"))
    explore_tree_structure(["/"])
    search_code_snippets(["Circle"])
    assert sorted(path for path in repo.rglob("*")) == before
    (repo / "main.py").write_text(MAIN + "\n\ndef added():\n    main()\n")
    assert "invokes ── main.py:main" in explore_tree_structure(["main.py:added"])
    (repo / "main.py").unlink()
    assert "is invalid" in explore_tree_structure(["main.py:added"])
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.py").write_text("def one(): pass\n")
    monkeypatch.setenv("REPO_PATH", str(other))
    assert explore_tree_structure(["/"], traversal_depth=1) == "/\n└── contains ── one.py"
    monkeypatch.delenv("REPO_PATH")
    monkeypatch.chdir(other)
    assert "one.py:one" in explore_tree_structure(["/"])
    monkeypatch.setenv("REPO_PATH", str(tmp_path / "missing"))
    with pytest.raises(SkillError, match="REPO_PATH"):
        explore_tree_structure(["/"])


def test_a_planted_index_is_not_loaded(repo):
    """The peers keep a pickle in the repository, and run what is in it."""
    folder = repo / "_index_data" / "graph_index_v2.3"
    folder.mkdir(parents=True)
    (folder / "code_graph.pkl").write_bytes(b"cos\nsystem\n(S'touch planted'\ntR.")
    explore_tree_structure(["/"])
    assert not os.path.exists("planted")
    assert not (repo / "planted").exists()


def test_files_that_are_hard_to_read(repo):
    (repo / "broken.py").write_text("def good():\n    pass\n\ndef bad(:\n    pass\n")
    (repo / "latin.py").write_bytes("# caf\xe9\ndef accented():\n    pass\n".encode("cp1252"))
    (repo / "binary.py").write_bytes(b"\0\1\2" * 100)
    (repo / "loop.py").symlink_to(repo / "loop.py")
    tree = explore_tree_structure(["/"], traversal_depth=-1)
    assert "broken.py:good" in tree
    assert "latin.py:accented" in tree
    assert "binary.py" not in tree
    assert "loop.py" not in tree


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.js",
            "import { f } from './b';\nclass A extends B { m() { return this.n(f()); } n() {} }\n"
            "const g = (x) => x;\nclass B {}\n",
            ["a.js:A.m", "a.js:g", "inherits ── a.js:B", "invokes ── a.js:A.n"],
        ),
        (
            "a.ts",
            "export interface I { x: number }\nexport class A { m(): void { go(); } }\n"
            "function go() {}\n",
            ["a.ts:I", "a.ts:A.m", "invokes ── a.ts:go"],
        ),
        (
            "a.go",
            "package a\ntype T struct{}\nfunc (t *T) M() { f() }\nfunc f() {}\n",
            ["a.go:T", "a.go:T.M", "invokes ── a.go:f"],
        ),
        (
            "A.java",
            "class B {}\nclass A extends B { void m() { n(); } void n() {} }\n",
            ["A.java:A.m", "inherits ── A.java:B"],
        ),
        (
            "a.rs",
            "struct T;\nimpl T { fn m(&self) { f(); } }\nfn f() {}\n",
            ["a.rs:T.m", "invokes ── a.rs:f"],
        ),
        (
            "a.cpp",
            "class B {};\nclass A : public B { public: int m() { return f(); } };\n"
            "int f() { return 1; }\nint *A::n() { return 0; }\n",
            ["a.cpp:A.m", "inherits ── a.cpp:B", "a.cpp:A.n"],
        ),
        (
            "a.cs",
            "namespace N { class B {} class A : B { int M() { return F(); } int F() => 1; } }\n",
            ["a.cs:A.M", "inherits ── a.cs:B", "invokes ── a.cs:A.F"],
        ),
        (
            "a.php",
            "<?php\nclass B {}\nclass A extends B { function m() { return f(); } }\n"
            "function f() { return 1; }\n",
            ["a.php:A.m", "inherits ── a.php:B", "invokes ── a.php:f"],
        ),
        ("a.rb", "class A < B\n  def m\n    1\n  end\nend\nclass B\nend\n", ["a.rb:A.m", "a.rb:B"]),
    ],
)
def test_other_languages(tmp_path, monkeypatch, name, text, expected):
    monkeypatch.setenv("REPO_PATH", str(tmp_path))
    (tmp_path / name).write_text(text)
    tree = explore_tree_structure(["/"], traversal_depth=-1)
    for part in expected:
        assert part in tree, tree
