# ruff: noqa: RUF001
"""Text outside of an edit stays byte for byte."""

import codecs

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oh_jupyter.editor import EditorParameterInvalidError, FileEditor
from oh_jupyter.editor.text.text_file import TextFile, detect, to_newlines


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        ("plain", "ascii", "utf-8"),
        ("$1", "ascii", "utf-8"),
        ("ü", "utf-8", "utf-8"),
        ("漢字 ─│ 🎉", "utf-8", "utf-8"),
        ("a" * (1 << 20) + "ü", "utf-8", "utf-8"),
        ("a" * ((1 << 20) - 1) + "ü", "utf-8", "utf-8"),
        ("bom", "utf-8-sig", "utf-8"),
        ("bom ü", "utf-16", "utf-16-le"),
        ("bom ü", "utf-32", "utf-32-le"),
        ("für Übung", "latin-1", "cp1252"),
        ("ü", "latin-1", "cp1252"),
        ("déjà vu, ça va", "latin-1", "cp1252"),
        ("naïve – “quotes”", "cp1252", "cp1252"),
        ("Привет мир, как дела сегодня", "cp1251", "cp1251"),
        ("# -*- coding: koi8-r -*-\nПривет", "koi8-r", "koi8-r"),
        ("<?php\n// vim: fileencoding=cp1251\n", "ascii", "utf-8"),
        ("こんにちは世界", "shift_jis", "cp932"),
        ("안녕하세요 세계", "euc_kr", "euc_kr"),
        ("\x1b[31mred\x1b[0m ü", "utf-8", "utf-8"),
    ],
)
def test_encodings_are_found(text, codec, name):
    encoding = detect(text.encode(codec))
    assert encoding.name == name
    assert text.encode(codec)[len(encoding.bom) :].decode(name) == text


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"text\0",
        b"\xff\xd8\xff\xe0 jpeg",
        bytes(range(1, 256)),
        b"%PDF-1.7\nascii only",
        codecs.BOM_UTF16_LE + b"\0",
    ],
)
def test_binary_is_found(data):
    assert detect(data) is None


@pytest.mark.parametrize(
    "codec", ["utf-8-sig", "utf-16", "utf-32", "cp1251", "koi8-r", "gb18030", "euc_kr"]
)
def test_an_edit_keeps_encoding_and_byte_order_mark(editor, write, codec):
    lines = {"gb18030": "你好世界，今天天气很好", "euc_kr": "안녕하세요 세계 여러분"}
    line = lines.get(codec, "Привет мир, как твои дела сегодня")
    text = f"{line}\r\nmiddle\r\n{line}"
    path = write("a.txt", text.encode(codec))
    editor(command="str_replace", path=path, old_str="middle\n", new_str=f"{line[:5]}\nx\n")
    assert path.read_bytes() == text.replace("middle", f"{line[:5]}\r\nx").encode(codec)
    editor(command="undo_edit", path=path)
    assert path.read_bytes() == text.encode(codec)


def test_a_character_that_the_encoding_lacks_is_refused(editor, write):
    data = "Привет мир, как дела сегодня\nx\n".encode("cp1251")
    path = write("a.txt", data)
    with pytest.raises(EditorParameterInvalidError, match=r"The file is in cp1251, .*'\\u2192'"):
        editor(command="str_replace", path=path, old_str="x", new_str="→")
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "x\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x", b"x\r\n"),
        (b"a\nb\r\nc\n", "b", "x\ny", b"a\nx\ny\r\nc\n"),
        (b"a\nb\r\nc\n", "c", "x\ny", b"a\nb\r\nx\r\ny\n"),
        (b"a\rb\rc", "b", "x\ny", b"a\rx\ry\rc"),
        (b"a\n\r\nb", "a", "x", b"x\n\r\nb"),
        (b"one", "one", "a\nb", b"a\nb"),
        (b"a\nb\r\nc\r", "a\nb\nc", "a\nB\nc", b"a\nB\r\nc\r"),
        (b"a\rb\nc", "b", "", b"a\r\n\nc"),
        (b"a\rb\nc", "b", "b\n", b"a\rb\r\n\nc"),
    ],
)
def test_line_ends_of_all_kinds(editor, write, before, old, new, after):
    path = write("a.txt", before)
    editor(command="str_replace", path=path, old_str=old, new_str=new)
    assert path.read_bytes() == after


ENDS = st.sampled_from(["\n", "\r\n", "\r", ""])
CODECS = ["utf-8", "utf-8-sig", "utf-16", "utf-32-be", "cp1251", "cp1252", "gb18030"]
WORDS = st.text("ab ü", max_size=6)


@st.composite
def contents(draw):
    codec = draw(st.sampled_from(CODECS))
    alphabet = "ab ж" if codec == "cp1251" else "ab ü"
    word = st.text(alphabet, max_size=6)
    text = "".join(draw(st.lists(st.tuples(word, ENDS), max_size=8).map(sum_up)))
    mark = codecs.BOM_UTF32_BE if codec == "utf-32-be" else b""
    return mark + text.encode(codec)


def sum_up(pairs):
    return "".join(word + end for word, end in pairs)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(content=contents(), moves=st.lists(st.integers(0, 4), max_size=10), data=st.data())
def test_any_edits_and_undos_give_every_byte_back(tmp_path_factory, content, moves, data):
    folder = tmp_path_factory.mktemp("property")
    path = folder / "a.txt"
    path.write_bytes(content)
    editor = FileEditor(folder, history_dir=folder / "history")
    done, undone = [content], []
    for move in moves:
        current = path.read_bytes()
        if move == 4 and undone:
            editor(command="redo_edit", path=path)
            done.append(undone.pop())
        elif move == 3 and len(done) > 1:
            editor(command="undo_edit", path=path)
            undone.append(done.pop())
        elif move < 3:
            _edit_somehow(editor, path, move, TextFile.parse(current), data)
            if path.read_bytes() == current:
                continue
            done.append(path.read_bytes())
            undone.clear()
        assert path.read_bytes() == done[-1]
    while len(done) > 1:
        editor(command="undo_edit", path=path)
        undone.append(done.pop())
        assert path.read_bytes() == done[-1]
    while undone:
        editor(command="redo_edit", path=path)
        assert path.read_bytes() == undone.pop()


def _edit_somehow(editor, path, move, file, data):
    text = file.text
    new = data.draw(st.text("ab \n", max_size=5))
    if move == 0:
        start = data.draw(st.integers(0, len(text)))
        old = text[start : data.draw(st.integers(start, len(text)))]
        if text.count(old) == 1 and old and old != new:
            editor(command="str_replace", path=path, old_str=old, new_str=new)
            expected = to_newlines(text.replace(old, new))
            assert TextFile(path.read_bytes(), file.encoding).text == expected
    elif move == 1:
        line = data.draw(st.integers(0, file.line_count))
        editor(command="insert", path=path, insert_line=line, new_str=new)
    else:
        start = data.draw(st.integers(0, file.line_count))
        editor(command="write", path=path, content=new, start=start, end=start + 1)


@given(text=st.text("a\r\nü", max_size=30), data=st.data())
def test_a_replacement_touches_no_byte_outside(text, data):
    raw = text.encode()
    file = TextFile(raw)
    start = data.draw(st.integers(0, len(file.text)))
    end = data.draw(st.integers(start, len(file.text)))
    new = file.replace(start, end, "<>")
    head, tail = new.split(b"<>")
    assert raw.startswith(head)
    assert raw.endswith(tail)
    assert to_newlines((head + b"<>" + tail).decode()) == file.text[:start] + "<>" + file.text[end:]
    assert to_newlines(head.decode()) in (
        file.text[:start],
        file.text[:start] + file.text[start:end],
    )


@given(text=st.text("ab\n", max_size=40), line=st.integers(-1, 45))
def test_offsets_of_lines(text, line):
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    file = TextFile(text.encode())
    assert file.line_count == len(lines)
    assert file.offset_of_line(line) == min(
        len(text), sum(len(part) + 1 for part in lines[: max(line - 1, 0)])
    )
