"""Properties of a command text that the protocol needs."""

from __future__ import annotations

import pytest

from oh_jupyter.shell.bash.parsing import displayed_command, is_complete, split_commands
from oh_jupyter.shell.driver import control_character


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "a; b & c",
        "a &&\nb ||\nc |\nd",
        "for i in 1 2\ndo\necho $i\ndone",
        "if a\nthen b\nelse c\nfi > out",
        "f() {\n  echo hi\n}",
        "case x in\na) b ;;\nesac",
        "x=(1\n2)",
        "cat <<EOF\na\n\nb\nEOF",
        "cat <<-'EOF' | grep x\n\ta $(\n\tEOF",
        "python3 - <<'E'\nprint('a')\nE",
        "echo 'a\nb' \"c\nd\" $(e\nf)",
        "# comment\nls",
        "ls\n# comment",
        "# only",
        "(\na\nb\n)",
        "{ a\nb\n}",
        "a \\\n  b",
        "echo 'open\nb",
        "if true\nthen",
        "",
    ],
)
def test_one_command(command: str) -> None:
    assert split_commands(command) == [command]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("a\nb", ["a", "b"]),
        ("a;\n\nb &\nc # d\n", ["a;", "b &", "c # d"]),
        ("# one\na\n# two\nb", ["# one\na\n# two", "b"]),
        ("cat <<EOF\nx\nEOF\nls", ["cat <<EOF\nx\nEOF", "ls"]),
        ("f() {\n a\n}\nf", ["f() {\n a\n}", "f"]),
        (
            "[[ a ]]\n((1))\nx=1\nexport y=é\ntime ls",
            ["[[ a ]]", "((1))", "x=1", "export y=é", "time ls"],
        ),
    ],
)
def test_several_commands(command: str, parts: list[str]) -> None:
    assert split_commands(command) == parts


@pytest.mark.parametrize(
    ("command", "complete"),
    [
        ("echo hi", True),
        ("cat <<EOF\nx\nEOF", True),
        ("cat <<EOF\nx", False),
        ("echo 'x", False),
        ("echo \\", False),
        ("a |", False),
        ("a &&", False),
        ("for x in", False),
        ("if true; then", False),
        ("echo $(", False),
        ("function f", False),
        ("case x in", False),
    ],
)
def test_complete(command: str, complete: bool) -> None:
    assert is_complete(command) is complete


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls", "ls"),
        ("find . -exec x {} \\;", "find . -exec x {} \\\\;"),
        (
            "a \\| b \\& \\< \\> \\; 'c\\;' \"d\\|\"",
            "a \\\\| b \\\\& \\\\< \\\\> \\\\; 'c\\;' \"d\\|\"",
        ),
        ("cat <<EOF\n\\;\nEOF", "cat <<EOF\n\\;\nEOF"),
        ("é \\;", "é \\\\;"),
        ("echo 'open \\;", "echo 'open \\;"),
    ],
)
def test_displayed(command: str, shown: str) -> None:
    assert displayed_command(command) == shown


@pytest.mark.parametrize(
    ("name", "character"),
    [("C-c", "\x03"), ("C-Z", "\x1a"), ("C-\\", "\x1c"), ("C-?", "\x7f"), ("C-@", "\0")]
    + [(text, None) for text in ("C-", "C-cc", "c-c", "C-1", "C-é", "ls ")],
)
def test_keys(name: str, character: str | None) -> None:
    assert control_character(name) == character
