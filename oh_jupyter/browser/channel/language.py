"""Parser of BrowserGym's high-level action language.

The text looks like Python, but is only parsed, never evaluated. A call is a name of
:data:`SIGNATURES` with literals as arguments. Anything else raises an error that names the
invalid piece, so that an agent can correct it.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from typing import Any

from oh_jupyter.errors import BrowserActionError
from oh_jupyter.text import shorten

MAX_NUMBER = 1e7
"""Maximum of pixels or milliseconds; infinite numbers break the browser."""
MAX_SHOWN_CHARS = 200
"""Characters of an action that an error shows."""
BUTTONS = ("left", "middle", "right")
MODIFIERS = ("Alt", "Control", "ControlOrMeta", "Meta", "Shift")

_SPECIFICATION = {
    "scroll": "delta_x:number delta_y:number",
    "fill": "bid:string value:string enable_autocomplete_menu:bool=False",
    "select_option": "bid:string options:strings",
    "click": "bid:string button:button='left' modifiers:modifiers=[]",
    "dblclick": "bid:string button:button='left' modifiers:modifiers=[]",
    "hover": "bid:string",
    "press": "bid:string key_comb:string",
    "focus": "bid:string",
    "clear": "bid:string",
    "check": "bid:string",
    "uncheck": "bid:string",
    "drag_and_drop": "from_bid:string to_bid:string",
    "upload_file": "bid:string file:strings",
    "scroll_at": "x:number y:number dx:number dy:number",
    "mouse_move": "x:number y:number",
    "mouse_up": "x:number y:number button:button='left'",
    "mouse_down": "x:number y:number button:button='left'",
    "mouse_click": "x:number y:number button:button='left'",
    "mouse_dblclick": "x:number y:number button:button='left'",
    "mouse_drag_and_drop": "from_x:number from_y:number to_x:number to_y:number",
    "mouse_upload_file": "x:number y:number file:strings",
    "keyboard_down": "key:string",
    "keyboard_up": "key:string",
    "keyboard_press": "key:string",
    "keyboard_type": "text:string",
    "keyboard_insert_text": "text:string",
    "goto": "url:string",
    "go_back": "",
    "go_forward": "",
    "new_tab": "",
    "tab_close": "",
    "tab_focus": "index:integer",
    "send_msg_to_user": "text:string",
    "report_infeasible": "reason:string",
    "noop": "wait_ms:milliseconds=1000",
    # Not part of BrowserGym's language: answering dialogs and reading large pages.
    "handle_dialog": "accept:bool=True text:string=''",
    "page_text": "start:position=0",
    "find": "text:string",
}
ALIASES = {
    ("mouse_drag_and_drop", short): long
    for short, long in (("x1", "from_x"), ("y1", "from_y"), ("x2", "to_x"), ("y2", "to_y"))
}
"""Alternative names of arguments."""


def _signature(specification: str) -> Signature:
    """Parse ``name:kind=default …`` into a signature with the kinds as annotations."""
    parameters = []
    for word in specification.split():
        name, _, rest = word.partition(":")
        kind, equals, default = rest.partition("=")
        parameters.append(
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                default=ast.literal_eval(default) if equals else Parameter.empty,
                annotation=kind,
            )
        )
    return Signature(parameters)


SIGNATURES: dict[str, Signature] = {
    name: _signature(specification) for name, specification in _SPECIFICATION.items()
}
"""Signature of each function of the language; annotations are the kinds of values."""


EMPTY = "ValueError: Received an empty action."
"""BrowserGym's message for a text without calls."""
QUOTES_HINT = 'Escape quotes within a string with a backslash, as in "17\\" screen".'
_CALL_START = re.compile(rf"(?<![\w.])(?:{'|'.join(SIGNATURES)})\(")
_PUNCTUATION = re.compile(
    r"\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}"
    r"|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[\"'()\[\]{}]",
    re.DOTALL,
)
"""Complete strings, unclosed quotes, and brackets."""


class _NotCodeError(BrowserActionError):
    """Text that contains more than calls."""


@dataclass(frozen=True)
class Call:
    """Call of a function of the language."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    source: str = ""


def parse_actions(text: str) -> list[Call]:
    """Parse the calls in a text; skip prose and code fences around them."""
    try:
        calls = [_parse_call(piece) for piece in _split(text)]
    except _NotCodeError as error:
        calls = _search(text)
        if not calls:
            raise BrowserActionError(f"{EMPTY} {error}") from None
    if not calls:
        raise BrowserActionError(
            f'{EMPTY} Give one or more calls, such as goto("https://example.org").'
        )
    return calls


def _search(text: str) -> list[Call]:
    """Find the calls in a text with prose."""
    calls, end = [], 0
    for match in _CALL_START.finditer(text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        if match.start() < end or "#" in text[max(line_start, end) : match.start()]:
            continue
        end = _end_of_call(text, match.end())
        try:
            calls.append(_parse_call(text[match.start() : end]))
        except _NotCodeError as error:
            raise BrowserActionError(f"{EMPTY} {error}. {QUOTES_HINT}") from None
    return calls


def _end_of_call(text: str, position: int) -> int:
    """Find the end of a call whose arguments begin at that position."""
    depth = 1
    for match in _PUNCTUATION.finditer(text, position):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise BrowserActionError(
        f"{EMPTY} The action cannot be parsed: a quote or parenthesis is not closed: "
        f"{shorten(text[max(0, position - 30) :], MAX_SHOWN_CHARS)}"
    )


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Tokenize the text in parentheses, so that its indentation has no meaning."""
    lines = io.StringIO(f"(\n{text}\n)").readline
    try:
        yield from tokenize.generate_tokens(lines)
    except (tokenize.TokenError, SyntaxError) as error:
        reason = str(error.args[0])
        raise _NotCodeError(
            f"The action cannot be parsed: {reason}. Check quotes and parentheses in: "
            f"{shorten(text, MAX_SHOWN_CHARS)}"
        ) from None


def _split(text: str) -> Iterator[str]:
    """Split the text after each closing parenthesis of the outermost level."""
    lines = text.split("\n")
    start: tuple[int, int] | None = None
    depth = 0
    for token in _tokens(text):
        ends_last_line = token.start[0] > len(lines) + 1
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE):
            continue
        if token.start[0] == 1 or token.type == tokenize.ENDMARKER:
            continue
        if ends_last_line:
            if depth:
                raise _NotCodeError(
                    "The action cannot be parsed: a parenthesis is not closed: "
                    f"{shorten(text, MAX_SHOWN_CHARS)}"
                )
            if start is not None:
                yield _slice(lines, start, (len(lines) + 1, len(lines[-1])))
            return
        if start is None:
            if token.string == ";":
                continue
            start = token.start
        if token.string in ("(", "[", "{"):
            depth += 1
        elif token.string in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                raise _NotCodeError(
                    f"The action cannot be parsed: unmatched {token.string!r}: "
                    f"{shorten(text, MAX_SHOWN_CHARS)}"
                )
            if depth == 0:
                yield _slice(lines, start, token.end)
                start = None


def _slice(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text between two token positions; its first line is number 2."""
    first, last = start[0] - 2, end[0] - 2
    if first == last:
        return lines[first][start[1] : end[1]]
    return "\n".join([lines[first][start[1] :], *lines[first + 1 : last], lines[last][: end[1]]])


def _parse_call(source: str) -> Call:
    try:
        node = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise _NotCodeError(
            f"The action cannot be parsed: {reason}, in: {shorten(source, MAX_SHOWN_CHARS)}"
        ) from None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise _NotCodeError(
            f"Not a call of the form name(argument, …): {shorten(source, MAX_SHOWN_CHARS)}. "
            'Example: click("12")'
        )
    name = node.func.id
    if name not in SIGNATURES:
        raise BrowserActionError(
            f"NameError: Invalid action type '{name}'. The functions are: "
            f"{', '.join(sorted(SIGNATURES))}."
        )
    positional = [_literal(argument, name) for argument in node.args]
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise BrowserActionError(f"ValueError: {name}: ** is not allowed; name each argument.")
        if keyword.arg in keywords:
            raise BrowserActionError(
                f"TypeError: {name}() got multiple values for argument '{keyword.arg}'."
            )
        keywords[ALIASES.get((name, keyword.arg), keyword.arg)] = _literal(keyword.value, name)
    return Call(name, _bind(name, positional, keywords), source)


def _bind(name: str, positional: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
    signature = SIGNATURES[name]
    try:
        bound = signature.bind(*positional, **keywords)
    except TypeError:
        reason = _type_error(name, positional, keywords)
        raise BrowserActionError(f"TypeError: {reason}. Usage: {_usage(name)}") from None
    bound.apply_defaults()
    for parameter in signature.parameters.values():
        value = bound.arguments[parameter.name]
        expected = _mismatch(parameter.annotation, value)
        if not expected:
            continue
        reason = f"{name}: {parameter.name} must be {expected}, got {value!r}"
        if parameter.name.endswith("bid"):
            reason = f"expected a string, got {value!r}. {reason}"
        raise BrowserActionError(f"ValueError: {reason}. Usage: {_usage(name)}")
    return dict(bound.arguments)


def _type_error(name: str, positional: list[Any], keywords: dict[str, Any]) -> str:
    """Return Python's error message for wrong arguments; evaluates only the signature."""
    functions: dict[str, Any] = {}
    exec(f"def {_usage(name)}: pass", functions)
    try:
        functions[name](*positional, **keywords)
    except TypeError as error:
        return str(error)
    return "the arguments do not fit"


def _usage(name: str) -> str:
    shown = []
    for parameter in SIGNATURES[name].parameters.values():
        default = "" if parameter.default is Parameter.empty else f"={parameter.default!r}"
        shown.append(f"{parameter.name}{default}")
    return f"{name}({', '.join(shown)})"


def _mismatch(kind: str, value: Any) -> str:
    """Return the expected value of that kind, or "" if the value matches."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_strings = isinstance(value, list) and all(isinstance(item, str) for item in value)
    rules = {
        "string": (isinstance(value, str), 'a string (expected a string, such as "12")'),
        "number": (
            is_number and abs(value) <= MAX_NUMBER,
            f"a number between -{MAX_NUMBER:g} and {MAX_NUMBER:g}",
        ),
        "milliseconds": (
            is_number and 0 <= value <= MAX_NUMBER,
            f"a number of milliseconds between 0 and {MAX_NUMBER:g}",
        ),
        "integer": (is_number and isinstance(value, int), "a whole number"),
        "position": (is_number and isinstance(value, int) and value >= 0, "a whole number ≥ 0"),
        "bool": (isinstance(value, bool), "True or False"),
        "strings": (isinstance(value, str) or is_strings, "a string or a list of strings"),
        "button": (value in BUTTONS, 'one of "left", "middle", "right"'),
        "modifiers": (
            is_strings and all(item in MODIFIERS for item in value),
            f"a list of {', '.join(MODIFIERS)}",
        ),
    }
    matches, expected = rules[kind]
    return "" if matches else expected


def _literal(node: ast.expr, function: str) -> Any:
    """Return the value of a literal; raise an error for anything that needs evaluation."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | bool | None):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(item, function) for item in node.elts]
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        items = zip(filter(None, node.keys), node.values, strict=True)
        return {_literal(key, function): _literal(value, function) for key, value in items}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        number = _literal(node.operand, function)
        if isinstance(number, int | float) and not isinstance(number, bool):
            return -number if isinstance(node.op, ast.USub) else number
    raise BrowserActionError(
        f"{EMPTY} {function}: Malformed value {shorten(ast.unparse(node), MAX_SHOWN_CHARS)}: "
        "arguments are literals only (strings, numbers, True, False, None, lists, dicts); nothing "
        "is evaluated."
    )
