import unicodedata

import pytest

from oh_jupyter.editor import NoReplacementError
from oh_jupyter.editor.text.fuzzy import explain_absence

TEXT = "def f(x):\n    if x:\n        return 'a'\n    return None\n\n\nclass A:\n    pass\n"


@pytest.mark.parametrize(
    ("old", "where", "kind"),
    [
        ("def f(x):\n  if x:\n    return 'a'", "lines 1-3", "only in indentation"),
        ("def f(x): \n    if x:", "lines 1-2", "only in blanks at line ends"),
        ("def  f(x):", "line 1", "only in blanks"),
        ("        return \u2018a\u2019", "line 3", "the kind of quotes"),
        ("Class A:", "line 7", "upper and lower case"),
        ("    if y:\n        return 'a'", "lines 2-3", "in 1 line"),
        ("    return Nothing", "line 4", "in 1 line"),
    ],
)
def test_the_closest_place_is_named(old, where, kind):
    message = explain_absence(TEXT, old, "new")
    assert message.startswith(f"\nThe closest match is in {where}. It differs ")
    assert kind in message


def test_differences_are_made_visible():
    message = explain_absence("a \n\tb\n", "a\n\tb", "new")
    assert "- old_str: a\n+ file:    a·" in message


def test_an_edit_that_was_made_before():
    message = explain_absence(TEXT, "return 'b'", "return 'a'")
    assert message.startswith("\nThe text of `new_str` is already in line 3")


def test_line_numbers_of_a_view():
    message = explain_absence(TEXT, "     1\tdef f(x):\n     2\t    if x:", "new")
    assert "contains the line numbers of a view" in message


def test_line_numbers_of_a_view_around_lines_that_are_not_quite_there():
    message = explain_absence(TEXT, "     2\t  if x:\n     3\t    return 'a'", "new")
    assert "contains the line numbers of a view; remove them." in message
    assert "The closest match is in lines 2-3. It differs only in indentation:" in message


def test_where_it_is_without_the_numbers():
    message = explain_absence(TEXT, "3→        return 'a'\n4→    return None", "new")
    assert message.endswith("it appears without them, in lines 3-4. Remove them and try again.")


def test_numbers_that_do_not_count_up_are_text():
    assert "line numbers" not in explain_absence("x\n", "1: x\n7: y", "new")


@pytest.mark.parametrize(
    ("old", "word"),
    [
        ("def f(x):\\n    if x:", "escaped once too often"),
        ("if x &lt; 1:", "HTML entities"),
    ],
)
def test_text_that_was_escaped(old, word):
    message = explain_absence(TEXT + "if x < 1:\n", old, "new")
    assert word in message
    assert "The file has the intended text in" in message


def test_letters_that_are_composed_otherwise():
    message = explain_absence("caf\u00e9 = 1\n", "cafe\u0301 = 1", "new")
    assert "how accented letters are encoded" in message


def test_nothing_similar():
    assert explain_absence(TEXT, "completely unrelated words", "new") == ""


def test_help_comes_after_the_sentence_that_clients_match(editor, write):
    path = write("a.py", TEXT)
    with pytest.raises(NoReplacementError) as caught:
        editor(command="str_replace", path=path, old_str="if  x:", new_str="y")
    assert str(caught.value).startswith(
        f"No replacement was performed, old_str `if  x:` did not appear verbatim in {path}.\n"
        "The closest match is in line 2."
    )


def test_a_large_file_is_searched_quickly(seconds):
    text = "".join(f"line number {n} of the file\n" for n in range(100_000))
    typo = "line  number 99000 of the file\nline number 1"
    assert "lines 99001-99002" in explain_absence(text, typo, "new")
    wanted = (typo, "nothing like it at all")
    assert seconds(lambda: [explain_absence(text, each, "new") for each in wanted]) < 5


@pytest.mark.parametrize(
    ("content", "old", "lines"),
    [
        ("a\nle café est là\nb\n", "café", "line 2"),
        ("a\nle café est là\nb\n", "le café est là", "line 2"),
        ("a\nest là\nune réponse\n", "là\nune ré", "lines 2-3"),
        ('x = "é"\n' * 3, '"é"', "line 1"),
        ("한글 텍스트\n", "한글", "line 1"),
        ("Å\n" + "é è\n" * 3000, "è\né", "lines 2-3"),
    ],
)
@pytest.mark.parametrize("forms", [("NFD", "NFC"), ("NFC", "NFD")])
def test_accented_letters_in_another_form_are_named(
    content: str, old: str, lines: str, forms: tuple[str, str]
) -> None:
    file, sent = forms
    text = unicodedata.normalize(file, content)
    hint = explain_absence(text, unicodedata.normalize(sent, old), "new")
    kinds = {"NFC": "composed (NFC)", "NFD": "decomposed (NFD)"}
    assert f"has {kinds[sent]} letters" in hint
    assert f"those of the file are {kinds[file]}" in hint
    assert hint.endswith(f"The file has the same text in {lines}.")


def test_a_file_in_both_forms_is_named() -> None:
    text = "ré" + unicodedata.normalize("NFD", "é è")
    hint = explain_absence(text, unicodedata.normalize("NFD", "ré"), "new")
    assert "those of the file have another Unicode form" in hint
