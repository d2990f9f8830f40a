"""Each name of the product in README and documentation exists in the product."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from oh_jupyter.cli.program import make_parser
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.magics import MAGICS
from oh_jupyter.server.app import OhJupyter
from oh_jupyter.server.handlers.tables import described

ROOT = Path(__file__).parents[1]
MADE = {"_build", "reference", "tutorials"}
MISTAKES = "docs/explanation/first-hour.md"
"""Page that lists what people type wrongly, with the answers."""

PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if MADE.isdisjoint(page.relative_to(ROOT).parts)
    and page.relative_to(ROOT).as_posix() != MISTAKES
)
HTTP = r"(?:GET|POST|PUT|DELETE|PATCH)"
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)

OTHERS_MENUS = {"View", "Edit", "Settings", "Settings Editor", "Keyboard Shortcuts"}
"""Menus of JupyterLab itself."""

OTHERS_TRAITS = {
    *("JupyterHub", "Spawner", "KubeSpawner", "ServerApp", "PersonaManager", "GatewayClient"),
    *("MappingKernelManager", "IdentityProvider", "InteractiveShellApp", "KernelSpecManager"),
}
"""Configurable classes of other packages."""

OAUTH = {"register", "consent", "authorize", "token", "revoke"}
"""Endpoints of the hub's service; tests/hub requests them."""

OTHERS_OPTIONS = {
    *("--env", "--ek", "--agent", "--path", "--model", "--sandbox"),  # Harbor and Inspect
    *("--gateway-url", "--security-opt", "--privileged", "--cap-drop", "--new-session"),  # others
}
"""Options of other programs that a page names without the program."""


def spans(page: str) -> Iterator[str]:
    """The code of a page, each line of a block and each span by itself."""
    for match in CODE.finditer((ROOT / page).read_text("utf-8")):
        yield from match.group(0).strip("`").splitlines()


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


PROGRAM = make_parser(["evaluate"])
EVALUATE = ROOT / "oh_jupyter" / "kernel" / "magics" / "evaluate.py"
"""Source of the options of ``%oh_browse eval``, which has a parser of its own."""


def magic_options(name: str) -> set[str]:
    module, cls, _ = MAGICS[name]
    magics = getattr(importlib.import_module(f"oh_jupyter.kernel.magics.{module}"), cls)
    more = set(re.findall(r'"(--[a-z]+)"', EVALUATE.read_text())) if name == "oh_browse" else set()
    return options_of(getattr(magics, name).parser) | more | {"--help"}


def named_options(text: str) -> list[str]:
    """The long options in a command, without those of a program that it runs."""
    own = re.split(r"\s[|;#&]|\s--\s", text)[0]
    return re.findall(r"(?<![\w-])--[a-z][\w-]*", own)


def all_options(parser: argparse.ArgumentParser) -> set[str]:
    return options_of(parser).union(*map(all_options, commands_of(parser).values()))


def check_program(words: list[str], text: str) -> str:
    """Return what is wrong with a call of ``oh-jupyter``, or ""."""
    parser = PROGRAM
    for word in words:
        choices = commands_of(parser)
        if not choices or word.startswith("-"):
            break
        if word not in choices:
            return f"oh-jupyter has no command {word}"
        parser = choices[word]
    unknown = [each for each in named_options(text) if each not in options_of(parser)]
    return f"{parser.prog} has no {unknown[0]}" if unknown else ""


@pytest.mark.parametrize("page", PAGES)
def test_magics_and_their_options_exist(page: str) -> None:
    for span in spans(page):
        for name, rest in re.findall(r"%{1,2}(oh_\w+)([^%]*)", span):
            assert name in MAGICS, f"%{name} in: {span}"
            named = named_options(rest)
            if name in ("oh_run", "oh_agent"):  # the rest is a command, or words for the agent
                leading = re.match(r"(?:\s+--\S+)*", rest)
                named = named_options(leading.group(0)) if leading else []
            unknown = [each for each in named if each not in magic_options(name)]
            assert not unknown, f"%{name} has no {unknown[0]}: {span}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_exist(page: str) -> None:
    for span in spans(page):
        for text in re.findall(r"(?:^|[\s(/])oh-jupyter ([^`)\"]+)", span):
            words = re.match(r"[a-z -]*", text)
            assert words is not None
            if text.strip()[:1].islower():
                fault = check_program(words.group(0).split(), text)
                assert not fault, f"{fault}: {span}"


@pytest.mark.parametrize("page", PAGES)
def test_options_without_a_command_exist(page: str) -> None:
    known = set.union(all_options(PROGRAM), OTHERS_OPTIONS, *map(magic_options, MAGICS))
    for span in spans(page):
        if re.fullmatch(r"--[a-z][\w-]*(?:[ =].*)?", span):
            assert span.split()[0].split("=")[0] in known, span


@pytest.mark.parametrize("page", PAGES)
def test_settings_and_variables_exist(page: str) -> None:
    names = set(OhJupyter.class_trait_names())
    text = (ROOT / page).read_text("utf-8")
    for trait in re.findall(r"\bOhJupyter\.([a-z_]+)", text):
        assert trait in names, trait
    for cls, _ in re.findall(r"\bc\.([A-Z]\w+)\.([a-z_]+)", text):
        assert cls in {"OhJupyter", "OhJupyterHub", *OTHERS_TRAITS}, cls
    for variable in set(re.findall(r"\bOH_[A-Z_]*[A-Z]\b", text)):
        assert variable in product_text(), variable


def product_text() -> str:
    """The sources of the product, its tests and its scripts."""
    if not _texts:
        sources = [
            *(ROOT / "oh_jupyter").rglob("*.py"),
            *(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)),
            *(path for path in (ROOT / "scripts").iterdir() if path.is_file()),
            *((ROOT / "examples").rglob("*.py")),
        ]
        _texts.append("\n".join(path.read_text("utf-8", "replace") for path in sources))
    return _texts[0]


_texts: list[str] = []


def shape(path: str) -> tuple[str, ...]:
    """A path whose parameters are all the same."""
    parts = path.split("?")[0].strip("./").split("/")
    return tuple("{}" if re.search(r"[{}$]|^\d+$|…", part) else part for part in parts)


def served() -> set[tuple[str, ...]]:
    return {shape(path) for path in described()["paths"]}


def is_served(known: set[tuple[str, ...]], path: tuple[str, ...]) -> bool:
    """Whether the server has a path, or paths below it; a parameter matches any part."""
    return any(
        len(path) <= len(each) and all(b in ("{}", a) for a, b in zip(path, each, strict=False))
        for each in known
    ) or path[:2] == ("oh_jupyter", "store")


@pytest.mark.parametrize("page", PAGES)
def test_rest_paths_exist(page: str) -> None:
    known = served()
    for span in spans(page):
        paths = re.findall(rf"{HTTP} (?:\$OH_URL)?(/?[a-z][\w{{}}/.$-]*)", span)
        paths += re.findall(r"\$\{?OH_URL\}?(/[a-z][\w{}/.$-]*)", span)
        for path in paths:
            parts = shape(path)
            if "api" in parts[:2] or path in OAUTH:
                continue
            tries = [parts, ("oh_jupyter", *parts), ("oh_jupyter", "kernels", "{}", *parts)]
            assert any(map(partial(is_served, known), tries)), f"{path} in: {span}"


def test_the_readme_names_the_paths_of_a_kernel() -> None:
    known, text = served(), (ROOT / "README.md").read_text("utf-8")
    table = text.partition("| endpoint below")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        for path in re.findall(rf"{HTTP} (?:/?)([a-z][\w{{}}/.]*)", row.split(" | ")[0]):
            if path.startswith("store"):
                continue
            of_kernel = is_served(known, ("oh_jupyter", "kernels", "{}", *shape(path)))
            assert of_kernel != ("of the server only" in row), row
            assert is_served(known, ("oh_jupyter", *shape(path))), row


def labels() -> str:
    sources = (*(ROOT / "labextension" / "src").rglob("*.ts*"),)
    schemas = (ROOT / "labextension" / "schema").glob("*.json")
    return "\n".join(path.read_text("utf-8") for path in (*sources, *schemas))


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_menus_of_jupyterlab_exist(page: str) -> None:
    text, known = (ROOT / page).read_text("utf-8"), labels()
    named = set(re.findall(r"(?<!\*)\*((?:Agent: |OpenHands )[^*\n]+)\*", text))
    for chain in re.findall(r"\*[^*\n]+\*(?: > \*[^*\n]+\*)+", text):
        named |= set(re.findall(r"\*([^*]+)\*", chain))
    for chain in re.findall(r"(?<!\*)\*([^*\n]+ > [^*\n]+)\*", text):
        named |= set(chain.split(" > "))
    named |= set(re.findall(r"command \*([^*\n]+)\*", text))
    for name in named - OTHERS_MENUS:
        assert f"'{name}'" in known or f'"{name}"' in known, name
    for command in re.findall(r"`(oh-jupyter:[\w-]+)`", text):
        assert f"'{command}'" in known, command


@pytest.mark.parametrize("page", PAGES)
def test_attributes_of_oh_exist(page: str) -> None:
    for span in spans(page):
        for name in re.findall(r"(?<![\w./-])oh\.([a-z_]+)", span):
            assert hasattr(Oh, name), f"oh.{name} in: {span}"


@pytest.mark.parametrize("page", PAGES)
def test_files_of_the_repository_exist(page: str) -> None:
    folders = "examples|scripts|tests|plugins|labextension|notebooks"
    for span in spans(page):
        for path in re.findall(rf"(?<![\w./@-])((?:{folders})/[\w./-]*\w)", span):
            is_there = list(ROOT.glob(f"{path}*"))  # also of a pattern such as test_mcp*.py
            assert is_there or "BrowserGym" in lines_with(page, path), f"{path} in: {span}"


def lines_with(page: str, text: str) -> str:
    lines = (ROOT / page).read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if text in line)
