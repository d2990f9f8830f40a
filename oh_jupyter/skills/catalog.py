"""Catalogue of skills: our own, those of other packages, of the user, and of folders."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from oh_jupyter.background import Watchers
from oh_jupyter.errors import SkillError
from oh_jupyter.schema import parameters_schema

_logger = logging.getLogger(__name__)

PARENTS = (".agents/skills", ".claude/skills", ".codex/skills", ".openhands/skills", "skills")
"""Directories of a workspace whose folders can be skills, the most general first."""

FILE_NAME = "SKILL.md"
MAX_FOLDERS = 100
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_HEADER_CHARS = 8192

_FIELD = re.compile(r"^(?P<name>[\w-]+):[ \t]*(?P<value>.*(?:\n[ \t]+.*)*)", re.MULTILINE)


class SkillFolder(NamedTuple):
    """Instructions for agents.

    Attributes:
        name: The name, which is also that of the folder.
        description: When to use them, in one line.
        path: Path of the file.
    """

    name: str
    description: str
    path: Path


def skill_folders(workspace: str) -> list[SkillFolder]:
    """Return the skill folders of a workspace by name.

    Args:
        workspace: Its directory.

    Returns:
        The well-formed ones; of several with one name, that of the most general directory.
    """
    folders: dict[str, SkillFolder] = {}
    for folder in _read_all(Path(workspace)):
        folders.setdefault(folder.name, folder)
        if len(folders) >= MAX_FOLDERS:
            break
    return [folders[name] for name in sorted(folders)]


def _read_all(workspace: Path) -> Iterator[SkillFolder]:
    for parent in PARENTS:
        for file in sorted((workspace / parent).glob(f"*/{FILE_NAME}")):
            try:
                yield _read(file)
            except (OSError, ValueError) as error:
                _logger.info("The skill %s is skipped: %s", file, error)


def _read(file: Path) -> SkillFolder:
    """Return the skill in a file; raise ValueError if its header is not well formed."""
    with file.open(encoding="utf-8") as opened:
        text = opened.read(MAX_HEADER_CHARS)
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*$", text, re.DOTALL | re.MULTILINE)
    if match is None:
        raise ValueError("it does not begin with a header between lines of ---")
    fields = {field["name"]: _value(field["value"]) for field in _FIELD.finditer(match[1])}
    name, description = fields.get("name", ""), fields.get("description", "")
    if name != file.parent.name or not 0 < len(name) <= MAX_NAME_CHARS:
        raise ValueError(f"its name {name!r:.80} is not that of its folder")
    if not 0 < len(description) <= MAX_DESCRIPTION_CHARS:
        raise ValueError(f"its description has {len(description)} characters")
    return SkillFolder(name, description, file)


def _value(text: str) -> str:
    """Return a string of the header in one line: plain, quoted, or a block."""
    value = re.sub(r"^[|>][+-]?[ \t]*\n", "", text.strip())
    line = " ".join(value.split())
    is_quoted = len(line) > 1 and line[0] == line[-1] and line[0] in "\"'"
    return line[1:-1] if is_quoted else line


ENTRY_POINT_GROUP = "oh_jupyter.skills"
"""Entry point group for skills of other packages: name = module:function."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _BuiltIn(NamedTuple):
    """One of our own skills, and the packages it requires."""

    name: str
    module: str
    packages: tuple[str, ...] = ()


_GRAMMAR = ("tree_sitter", "tree_sitter_python")
_BUILT_IN = (
    _BuiltIn("open_file", "file_ops"),
    _BuiltIn("goto_line", "file_ops"),
    _BuiltIn("scroll_down", "file_ops"),
    _BuiltIn("scroll_up", "file_ops"),
    _BuiltIn("search_dir", "file_ops"),
    _BuiltIn("search_file", "file_ops"),
    _BuiltIn("find_file", "file_ops"),
    _BuiltIn("parse_pdf", "file_reader", ("pypdf",)),
    _BuiltIn("parse_docx", "file_reader", ("docx",)),
    _BuiltIn("parse_latex", "file_reader", ("pylatexenc",)),
    _BuiltIn("parse_pptx", "file_reader", ("pptx",)),
    _BuiltIn("parse_audio", "file_reader", ("openai",)),
    _BuiltIn("parse_video", "file_reader", ("openai", "cv2")),
    _BuiltIn("parse_image", "file_reader", ("openai",)),
    _BuiltIn("get_entity_contents", "repo_ops", _GRAMMAR),
    _BuiltIn("search_code_snippets", "repo_ops", _GRAMMAR),
    _BuiltIn("explore_tree_structure", "repo_ops", _GRAMMAR),
    _BuiltIn("file_editor", "file_editor"),
)
_UNDOCUMENTED = "file_editor"  # agents know its tool description


_registered: dict[str, Callable[..., Any]] = {}
_removed: set[str] = set()
_watchers: Watchers[[]] = Watchers()


class Skill(NamedTuple):
    """One skill.

    Attributes:
        function: The function.
        signature: Its parameters, such as ``(path: str, line_number: int = 1)``.
        docstring: Its docstring.
    """

    function: Callable[..., Any]
    signature: str
    docstring: str


def on_change(callback: Callable[[], None]) -> Callable[[], None]:
    """Call a function whenever the set of skills changes.

    Args:
        callback: The function; it runs on the thread that makes the change.

    Returns:
        A function that unsubscribes.
    """
    return _watchers.add(callback)


def register(function: _Function, name: str | None = None) -> _Function:
    """Register a function as a skill, replacing one of the same name; usable as a decorator.

    Args:
        function: The function, with a docstring.
        name: Name of the skill; by default the function's.

    Returns:
        The same function.

    Raises:
        TypeError: It is not a named function.
    """
    name = getattr(function, "__name__", "") if name is None else name
    if not callable(function) or not name.isidentifier():
        raise TypeError(f"a skill is a function with a name, not {function!r}")
    _registered[name] = function
    _removed.discard(name)
    _watchers.tell()
    return function


def add(target: str) -> str:
    """Register a function of an importable module as a skill, or restore a removed skill.

    Args:
        target: ``module:function``, or the name of a removed skill.

    Returns:
        The name of the skill.

    Raises:
        SkillError: The module or function does not exist.
    """
    if ":" not in target:
        if target not in _removed:
            raise SkillError(f"There is no removed skill {target!r}. Write module:function.")
        _removed.discard(target)
        _watchers.tell()
        return target
    module, _, name = target.partition(":")
    try:
        function: Any = import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
        register(function)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise SkillError(f"{target} cannot be added: {error}") from error
    return str(function.__name__)


def remove(name: str) -> None:
    """Remove a skill, one of our own or another.

    Args:
        name: Its name.

    Raises:
        SkillError: There is no such skill.
    """
    find(name)
    _registered.pop(name, None)
    _removed.add(name)
    _watchers.tell()


def available() -> dict[str, Callable[..., Any]]:
    """Return the skills whose packages are installed.

    Returns:
        The functions by name: our own, those of entry points, and registered ones.
    """
    functions: dict[str, Callable[..., Any]] = {}
    for skill in _BUILT_IN:
        if all(find_spec(package) is not None for package in skill.packages):
            module = import_module(f"oh_jupyter.skills.{skill.module}")
            functions[skill.name] = getattr(module, skill.name)
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            functions[point.name] = point.load()
        except ImportError:
            _logger.debug("Skill %s is skipped", point.name, exc_info=True)
        except Exception:
            _logger.warning(
                "Skill %s cannot be loaded from %s", point.name, point.value, exc_info=True
            )
    functions |= _registered
    return {name: function for name, function in functions.items() if name not in _removed}


def find(name: str) -> Callable[..., Any]:
    """Find a skill by its name.

    Args:
        name: Its name.

    Returns:
        The function.

    Raises:
        SkillError: There is no such skill; the message names the closest ones.
    """
    functions = available()
    if name not in functions:
        close = get_close_matches(name, functions, n=3, cutoff=0.5) or list(functions)
        raise SkillError(f"There is no skill {name!r}. Did you mean: {', '.join(close)}?")
    return functions[name]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a skill's arguments.

    Args:
        name: Its name.

    Returns:
        A JSON schema of an object.

    Raises:
        SkillError: There is no such skill.
    """
    return parameters_schema(find(name))


def registry() -> dict[str, Skill]:
    """Return a description of each available skill.

    Returns:
        Function, signature and docstring by name.
    """
    return {
        name: Skill(function, signature_of(function), inspect.getdoc(function) or "")
        for name, function in available().items()
    }


def signature_of(function: Callable[..., Any]) -> str:
    """Return the signature of a function, such as ``(path: str, line_number: int = 1) -> None``."""
    try:
        return str(inspect.signature(function, eval_str=True))
    except (NameError, AttributeError):  # an annotation that exists for type checkers only
        return str(inspect.signature(function))
    except (TypeError, ValueError):  # a C function without a signature
        return "(...)"


def documentation() -> str:
    """Describe the skills for an agent's prompt, in the format of OpenHands.

    Returns:
        For each skill a line with its signature, then its docstring, indented and
        without empty lines, then an empty line.
    """
    parts = []
    for name, skill in registry().items():
        if name != _UNDOCUMENTED:
            lines = (line.strip() for line in skill.docstring.splitlines())
            text = "\n".join(f"    {line}" for line in lines if line)
            parts.append(f"{name}{skill.signature}:\n{text}\n\n")
    return "".join(parts)
