"""The text that is installed into PowerShell, and what it answers."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

import pytest

from oh_jupyter.shell.powershell import script as powershell_script

TOKEN = "oh_0123456789abcdef"


def errors(text: str) -> list[str]:
    """Return the lines of a text that a grammar of PowerShell does not parse."""
    tree_sitter = pytest.importorskip("tree_sitter")
    grammar = pytest.importorskip("tree_sitter_powershell")
    source = text.encode()
    pending = [tree_sitter.Parser(tree_sitter.Language(grammar.language())).parse(source).root_node]
    findings = []
    while pending:
        node = pending.pop()
        if node.is_error or node.is_missing:
            line = node.start_point[0]
            findings.append(f"line {line + 1}: {text.splitlines()[line]}")
        else:
            pending += node.children
    return findings


def test_script_parses():
    assert errors(powershell_script.script(TOKEN)) == []
    with_directory = powershell_script.script(TOKEN, "/it's/first")
    assert errors(with_directory) == []
    assert "$env:PATH = '/it''s/first' + [IO.Path]::PathSeparator + $env:PATH" in with_directory
    assert errors("function { ]") != []


def test_typed_lines_parse_and_are_one_ascii_line_each():
    for typed in (
        powershell_script.typed_script(TOKEN),
        powershell_script.typed_command(TOKEN, "7", "echo 'é'\n\"$x`\"", {"A": "1\n2"}),
        powershell_script.typed_command(TOKEN, "8", "echo", {}, {"TRACEPARENT": "00-1"}),
    ):
        text = typed.decode("ascii")
        assert text.endswith("\n")
        assert text.count("\n") == 1
        assert errors(text) == []


def test_names_are_by_the_token():
    script = powershell_script.script(TOKEN)
    assert "OH" not in re.findall(r"[A-Za-z]+", script)
    assert len(re.findall(rf"function global:(?!{TOKEN}_|prompt)", script)) == 0


def test_command_and_variables_are_carried_literally():
    text = "echo \N{GRINNING FACE} `n $x 'y' \"z\"\n\n}"
    typed = powershell_script.typed_command(TOKEN, "7", text, {"A": "a=b\nc", "B": ""})
    match = re.fullmatch(rb"\. \((\w+)_begin 7 '(.*)' '(.*)'\)\n", typed)
    assert match
    assert match[1].decode() == TOKEN
    assert b64decode(match[2]).decode() == text
    assert b64decode(match[3]).decode() == "A=a=b\nc\0B="


def payload(*values: str) -> str:
    return ",".join(b64encode(value.encode()).decode() for value in values)


def test_report():
    report, ended = powershell_script.read_report(
        "7", payload("3", "True", "-1", "C:\\bin;D:\\", "C:\\Ünï")
    )
    assert ended
    assert (report.command_id, report.exit_code, report.background_pid) == ("7", 3, -1)
    assert (report.path, report.cwd, report.refused) == ("C:\\bin;D:\\", "C:\\Ünï", ())
    report, ended = powershell_script.read_report(
        "8", payload("0", "False", "42", "", "/", "a", "b\nc")
    )
    assert not ended
    assert (report.background_pid, report.refused) == (42, ("a", "b\nc"))
