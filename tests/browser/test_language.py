"""The action language is parsed to the letter and never evaluated."""

from __future__ import annotations

import re

import pytest

from oh_jupyter.browser.channel.language import SIGNATURES, parse_actions
from oh_jupyter.errors import BrowserActionError


def test_positional_and_keyword_arguments_with_defaults():
    (call,) = parse_actions("click('a51', modifiers=[\"Shift\"])")
    assert call.name == "click"
    assert call.arguments == {"bid": "a51", "button": "left", "modifiers": ["Shift"]}


@pytest.mark.parametrize(
    "text",
    [
        "noop()\ngo_back()\ntab_focus(-1)",
        "noop() go_back() tab_focus(-1)",
        "noop(); go_back(); tab_focus(-1);",
        "  noop()\n      go_back()\n  # a comment (with brackets\n tab_focus(\n   -1\n )  # end",
    ],
)
def test_several_calls(text: str):
    calls = parse_actions(text)
    assert [call.name for call in calls] == ["noop", "go_back", "tab_focus"]
    assert calls[0].arguments == {"wait_ms": 1000}
    assert calls[2].arguments == {"index": -1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"""fill('1', 'it\'s "so"')""", 'it\'s "so"'),
        ('fill("1", """two\nlines""")', "two\nlines"),
        (r"""fill("1", r'\d+')""", r"\d+"),
        ('fill("1", "a" "b")', "ab"),
        ('fill("1", "ünï ☃ (click(\\"2\\"))")', 'ünï ☃ (click("2"))'),
        ('fill("1", "é") ', "é"),
    ],
)
def test_strings_in_any_quoting(text: str, value: str):
    assert parse_actions(text)[0].arguments["value"] == value


def test_non_ascii_before_a_second_call():
    calls = parse_actions('fill("1", "ééé ☃") click("2")')
    assert [call.arguments["bid"] for call in calls] == ["1", "2"]
    assert calls[1].source.strip() == 'click("2")'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        # Type and text as BrowserGym's, where it has one.
        ("", "ValueError: Received an empty action."),
        ("# only a comment", "ValueError: Received an empty action."),
        ("import os", "ValueError: Received an empty action."),
        ("noop", "ValueError: Received an empty action."),
        ("I am done with this.", "ValueError: Received an empty action."),
        ("fly()", "NameError: Invalid action type 'fly'."),
        ("click()", "TypeError: click() missing 1 required positional argument: 'bid'"),
        ('click("1", "left", [], 4)', "TypeError: click() takes from 1 to 3 positional arguments"),
        (
            'click("1", colour="red")',
            "TypeError: click() got an unexpected keyword argument 'colour'",
        ),
        ("click(12)", "ValueError: expected a string, got 12"),
        ("click({'k': [1]})", "ValueError: expected a string, got {'k': [1]}"),
        ('click("1", {})', 'one of "left", "middle", "right"'),
        ("noop(-5)", "number of milliseconds between 0 and"),
        ("noop(1e400)", "number of milliseconds between 0 and"),
        ("scroll(0, 1e308)", "delta_y must be a number between"),
        ('click("1", button="top")', 'one of "left", "middle", "right"'),
        ('click("1", modifiers=["Ctrl"])', "modifiers must be a list of"),
        ('scroll("1", 2)', "delta_x must be a number"),
        ("scroll(True, 2)", "delta_x must be a number"),
        ("tab_focus(1.5)", "a whole number"),
        ('fill("1", value)', "Malformed value value"),
        ('fill("1", f"{1}")', "Malformed value"),
        ('fill("1", b"x")', "Malformed value"),
        ('fill("1", __import__("os").getcwd())', "Malformed value __import__"),
        ('fill("1", "a" + "b")', "Malformed value"),
        ('fill(*["1", "2"])', "Malformed value"),
        ('fill(**{"bid": "1"})', "** is not allowed"),
        ('page.click("1")', "Not a call of the form"),
        ('"click"', "Not a call of the form"),
        ("""click('7', "17" screen")""", "ValueError: Received an empty action. The action cannot"),
        ("""click('7', "17" screen")""", 'with a backslash, as in "17\\" screen"'),
        ("fill('1', value)", "ValueError: Received an empty action. fill: Malformed value"),
        ('click("1"', "ValueError: Received an empty action. The action cannot be parsed"),
        ('click("1)', "cannot be parsed"),
        ("click('1', 'left' and then", "cannot be parsed"),
        ("GET_EVAL_GOAL", "Not a call of the form"),
    ],
)
def test_refusals_name_the_piece(text: str, reason: str):
    with pytest.raises(BrowserActionError) as refused:
        parse_actions(text)
    assert reason in str(refused.value)
    assert re.match(r"(ValueError|TypeError|NameError): ", str(refused.value))


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("```python\nclick('12')\n```", ["click"]),
        # As OpenHands' BrowsingAgent leaves it.
        ("python\nclick('12')", ["click"]),
        ("I'll open it first. ```click('12')``` That's all.", ["click"]),
        ("Action: fill('1', 'it (was)') and then click(\"2\")", ["fill", "click"]),
        ("# click('1')\nSo: noop()", ["noop"]),
        ('click("1") and noop()', ["click", "noop"]),
        ('click("1"))', ["click"]),
        ("Thought: it's there\nfill('1', \"\"\"a ' b\nclick('9')\"\"\")", ["fill"]),
    ],
)
def test_calls_are_found_in_prose(text: str, calls: list[str]):
    assert [call.name for call in parse_actions(text)] == calls


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Now do it: fill('1', value) and click('2')", "Malformed value value"),
        ("fly()\nclick('2')", "Invalid action type 'fly'"),
        ("so, page.click('1')", "empty action"),
        ("do click('1', fill('2', 'x'))", "Malformed value"),
    ],
)
def test_a_wrong_call_in_prose_is_not_passed_over(text: str, reason: str):
    with pytest.raises(BrowserActionError, match=re.escape(reason)):
        parse_actions(text)


def test_the_whole_vocabulary_of_the_reference():
    names = """scroll fill select_option click dblclick hover press focus clear check uncheck
        drag_and_drop upload_file scroll_at mouse_move mouse_up mouse_down mouse_click
        mouse_dblclick mouse_drag_and_drop mouse_upload_file keyboard_down keyboard_up
        keyboard_press keyboard_type keyboard_insert_text goto go_back go_forward new_tab
        tab_close tab_focus send_msg_to_user report_infeasible noop"""
    assert set(SIGNATURES) == {*names.split(), "handle_dialog", "page_text", "find"}


def test_deep_nesting_is_an_error_not_a_crash():
    with pytest.raises(BrowserActionError):
        parse_actions("upload_file('1', " + "[" * 5000 + "]" * 5000 + ")")
