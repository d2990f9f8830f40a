"""Linting says what an edit broke, and nothing else."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from nbformat import v4

from oh_jupyter.editor.lint import GRAMMARS, lint_report

CLEAN = "No linting issues found in the changes."


@pytest.fixture
def lint(workspace):
    def lint(name, old, new):
        return lint_report(workspace / name, old, new)

    return lint


def issues(*lines):
    return "\n".join(["Linting issues found in the changes:", *lines]) + "\n"


def syntax_error(text):
    """Return flake8's report of a syntax error, with the interpreter's message."""
    with pytest.raises(SyntaxError) as caught:
        ast.parse(text)
    error = caught.value
    return f"- Line {error.lineno}, Column {error.offset + 1}: E999 {type(error).__name__}: " + (
        error.msg
    )


# Python


@pytest.mark.parametrize(
    "text",
    [
        "def f()\n    return x\n",
        "def f():\n    return 1\n   x = 2\n",
        "x = (\n",
        "\n    def foo():\n    return 1\n",
        "x = 'abc\n",
        "if x:\npass\n",
        "def f():\n\tx = 1\n        y = 2\n",
    ],
)
def test_syntax_errors(lint, text):
    assert lint("a.py", "", text) == issues(syntax_error(text))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("print(x)\n", ["- Line 1, Column 7: F821 undefined name 'x'"]),
        ("a = 1\n__all__ = ['b']\n", ["- Line 2, Column 1: F822 undefined name 'b' in __all__"]),
        (
            "def f(a, a): pass\nx\n",
            [
                "- Line 1, Column 1: F831 duplicate argument 'a' in function definition",
                "- Line 2, Column 1: F821 undefined name 'x'",
            ],
        ),
        ("import os\nx: int = '1'\nlambda: 1\n", []),  # what a style checker minds is nobody's
        ("return 5\n", ["- Line 1, Column 9: 'return' outside function"]),
        ("from m import *\nprint(x)\n", []),
        ("print(x)  # noqa\n", []),
        ("print(x)  # NOQA: E501, f821\n", []),
        ("print(x)  # noqa: E501\n", ["- Line 1, Column 7: F821 undefined name 'x'"]),
        ("# flake8: noqa\nprint(x\n", []),
        ("x = 1\0\n", ["- Line 1, Column 1: E999 SyntaxError: source code string cannot contain"]),
        ("x = '\\d'\n", []),
    ],
)
def test_issues_of_a_module(lint, text, lines):
    report = lint("a.py", "", text)
    if not lines:
        assert report == CLEAN
    else:
        assert report.startswith("\n".join(["Linting issues found in the changes:", *lines]))
        assert report.count("\n- ") == len(lines)


def test_deep_nesting_is_no_crash(lint):
    assert "issues found in the changes" in lint("a.py", "", "(" * 5000 + ")" * 5000)
    assert lint("a.json", "", "[" * 5000 + "]" * 5000) == CLEAN


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # A problem that was there, above, below and in the changed line.
        ("print(a)\nx = 1\n", "print(a)\nx = 2\n", []),
        ("x = 1\nprint(a)\n", "x = 2\ny = 3\nprint(a)\n", []),
        ("print(a)\n", "print(1, a)\n", []),
        ("print(a)\n", "print(a, a)\n", ["- Line 1, Column 10: F821 undefined name 'a'"]),
        # A problem that the edit makes elsewhere.
        ("import a\n\na.b()\n", "\na.b()\n", ["- Line 2, Column 1: F821 undefined name 'a'"]),
        ("print(a)\n", "print(b)\n", ["- Line 1, Column 7: F821 undefined name 'b'"]),
        ("if a:\nx\n", "y\nif a:\nx\n", []),
    ],
)
def test_only_issues_introduced_by_the_edit(lint, old, new, expected):
    assert lint("a.py", old, new) == (issues(*expected) if expected else CLEAN)


def without(monkeypatch, package):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)


def test_without_pyflakes_the_syntax_is_still_checked_and_the_package_named(lint, monkeypatch):
    without(monkeypatch, "pyflakes")
    note = "finding undefined names needs the package pyflakes. Install it with: pip install '"
    report = lint("a.py", "", "print(x)\n")
    assert report.startswith(f"{CLEAN}\nOnly the syntax was checked: {note}oh_jupyter[lint]'")
    assert "'return' outside function" in lint("a.py", "", "return 1\n")
    assert lint("a.py", "", "(\n") == issues(syntax_error("(\n"))


# Other languages


@pytest.mark.parametrize(
    ("name", "good", "bad", "expected"),
    [
        ("a.js", "f();\n", "f(;\n", "- Line 1, Column 3: Missing node"),
        ("a.jsx", "x = <b/>;\n", "x = <b;\n", "Missing node"),
        ("a.ts", "let x: number = 1;\n", "let x: = 1;\n", "- Line 1, Column 6: Syntax error"),
        ("a.tsx", "let a = <b/>;\n", "let a = <b>;\n", "Syntax error"),
        ("a.go", "package a\n", "package a\nfunc f() {\n", "- Line 2, Column 10: Syntax error"),
        ("a.rs", "fn f() {}\n", "fn f() { let x = ; }\n", "- Line 1, Column 16: Syntax error"),
        ("a.rb", "x\n", "def f\n", "- Line 1, Column 6: Missing node"),
        ("a.java", "class A {}\n", "class A { int f( }\n", "Syntax error"),
        ("a.c", "int x;\n", "int f( {\n", "Syntax error"),
        ("a.hpp", "class A {};\n", "class A {\n", "Syntax error"),
        ("a.cs", "class A {}\n", "class A { int f( }\n", "Syntax error"),
        ("a.php", "<?php f();\n", "<?php f( ;\n", "- Line 1, Column 9: Missing node"),
        ("a.css", "a { b: c }\n", "a { b: }\n", "- Line 1, Column 7: Missing node"),
        ("a.html", "<p>x</p>\n", "<p>x</\n", "Syntax error"),
        ("a.toml", "a = 1\n", "a = \n", "- Line 1, Column 1: Syntax error"),
        ("a.yml", "a: [1]\n", "a: [1\nb: 2\n", "- Line 1, Column 4: Syntax error"),
        ("a.sh", "ls\n", "if x; then\n", "- Line 1, Column 11: Missing node"),
        ("a.json", "{}\n", '{"a" 1}\n', "- Line 1, Column 6: Syntax error: Expecting ':' delim"),
    ],
)
def test_other_languages_are_parsed(lint, name, good, bad, expected):
    assert lint(name, bad, good) == CLEAN
    report = lint(name, good, bad)
    assert report.startswith("Linting issues found in the changes:\n- Line ")
    assert expected in report


def test_columns_count_characters(lint):
    assert "Line 1, Column 7:" in lint("a.js", "", "é(1); (")


def test_every_grammar_of_the_extra_is_there():
    for suffix, grammar in GRAMMARS.items():
        if grammar.extra:
            report = lint_report(Path("a" + suffix), "", "")
            assert report == CLEAN, suffix


def test_a_missing_grammar_is_named(lint, monkeypatch):
    without(monkeypatch, "tree_sitter_go")
    assert lint("a.go", "", "package") == (
        "Linting .go files needs the package tree-sitter-go. Install it with: pip install "
        "'oh_jupyter[lint]'"
    )


def test_other_files_have_no_issues(lint):
    assert lint("a.txt", "a", "(") == CLEAN
    assert lint("Makefile", "a", "(") == CLEAN


# Notebooks


def notebook(*sources, language="python", markdown=()):
    cells = [
        (v4.new_markdown_cell if index in markdown else v4.new_code_cell)(source)
        for index, source in enumerate(sources)
    ]
    for number, cell in enumerate(cells):
        cell.id = f"c{number}"
    metadata = {"language_info": {"name": language}}
    return json.dumps(v4.new_notebook(cells=cells, metadata=metadata))


def test_cells_are_linted_together_by_the_lines_of_the_view(lint):
    old = notebook("# Title (", "x = 1", "print(x)", markdown=[0])
    new = notebook("# Title (", "y = 1", "print(x)", markdown=[0])
    assert lint("a.ipynb", old, old.replace("x = 1", "x = 2")) == CLEAN
    assert lint("a.ipynb", old, new) == issues("- Line 6, Column 7: F821 undefined name 'x'")
    broken = notebook("# Title (", "x = (", "print(x]", markdown=[0])
    report = lint("a.ipynb", old, broken)
    assert "- Line 4, Column 6: E999" in report
    assert "- Line 6, Column 9: E999" in report


def test_syntax_of_notebooks_is_no_issue(lint):
    sources = (
        "%matplotlib inline\nfiles = !ls\nfor f in files:\n    !rm {f}\nlen?\nx = %who_ls",
        "await f\nasync for a in x: display(a)",
        "%%time\nx = 1",
        "%%bash\nif true; then",
        "get_ipython(), In, Out, _",
    )
    assert lint("a.ipynb", notebook(), notebook(*sources)) == CLEAN
    assert lint("a.ipynb", notebook(), notebook("%%time\n(")) != CLEAN
    assert lint("a.ipynb", notebook(), notebook("x <- (", language="R")) == CLEAN


def test_a_report_is_part_of_the_editors_output(editor, workspace, write):
    path = write("a.py", "x = 1\n")
    output = editor(
        command="str_replace", path=path, old_str="1", new_str="y", enable_linting=True
    ).output
    assert output.endswith(
        "\n\nLinting issues found in the changes:\n- Line 1, Column 5: F821 undefined name 'y'\n\n"
        "Review the changes and make sure they are as expected. Edit the file again if necessary."
    )
    output = editor(
        command="insert", path=path, insert_line=0, new_str="y = 1", enable_linting=True
    ).output
    assert "\n\nNo linting issues found in the changes.\nReview the changes" in output


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # The line is moved as it is, or changed in its place.
        ("a = x\nb = 1\n", "c = 1\na = x\n", []),
        ("a = x\n", "a = x + 1\n", []),
        ("a = x\n", "if 1:\n    a = x\n", []),
        # The name is gone where it was, and is used elsewhere.
        (
            "a = x\nb = 1\nc = 2\n",
            "a = 5\nb = 6\nc = x\n",
            ["- Line 3, Column 5: F821 undefined name 'x'"],
        ),
        ("a = x\n", "a = 1\nb = x\nc = 2\n", ["- Line 2, Column 5: F821 undefined name 'x'"]),
    ],
)
def test_an_undefined_name_that_is_used_elsewhere_in_the_changed_lines_is_new(
    lint, old, new, expected
):
    assert lint("a.py", old, new) == (issues(*expected) if expected else CLEAN)
