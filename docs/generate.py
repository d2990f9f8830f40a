"""Pages that are made from the code: tutorials, API, magics, settings, REST, MCP tools."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = (
    *("client", "editor", "shell", "browser", "storage", "skills", "events", "checkpoints"),
    *("plugins", "runtime", "agents", "evaluation", "testing", "config", "errors"),
)
SIGNS = {"line": "%", "cell": "%%"}
METHODS = ("get", "put", "post", "delete", "patch")


def write(docs: Path) -> None:
    """Write all of them below the directory of the documentation."""
    tutorials, reference = docs / "tutorials", docs / "reference"
    tutorials.mkdir(exist_ok=True)
    (reference / "api").mkdir(parents=True, exist_ok=True)
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text = notebook.read_text("utf-8").replace("](../docs/", "](../")
        (tutorials / notebook.name).write_text(text, "utf-8")
    pages = {
        "magics.md": magics(),
        "settings.md": settings(),
        "rest.md": rest(),
        "mcp.md": mcp_tools(),
        "command-line.md": command_line(),
        **{f"api/{name}.md": api(name) for name in PACKAGES},
    }
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        page = reference / name
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def api(name: str) -> Iterator[str]:
    """The public names of a package, with their docstrings."""
    package = importlib.import_module(f"oh_jupyter.{name}")
    yield f"# oh_jupyter.{name}\n"
    yield f"```{{eval-rst}}\n.. automodule:: {package.__name__}\n"
    yield "   :members:\n   :imported-members:\n   :show-inheritance:\n```"


def magics() -> Iterator[str]:
    """Each magic with its own help."""
    from oh_jupyter.kernel.magics import MAGICS

    yield "# Magics\n\n`%load_ext oh_jupyter` registers them; `--help` shows the same.\n"
    for name, (module, cls, kinds) in MAGICS.items():
        methods = getattr(importlib.import_module(f"oh_jupyter.kernel.magics.{module}"), cls)
        function = getattr(methods, name)
        signs = ", ".join(f"`{SIGNS[kind]}{name}`" for kind in kinds)
        yield f"## {name}\n\n{signs}\n"
        yield f"```text\n{help_of(function)}\n```\n"


def help_of(function: Any) -> str:
    """What ``--help`` shows: usage, options and the docstring."""
    parser = getattr(function, "parser", None)
    return (parser.format_help() if parser else function.__doc__ or "").replace("::\n", "").strip()


def settings() -> Iterator[str]:
    """Each setting with its default and its variables."""
    from oh_jupyter.config import Settings

    yield "# Settings\n\nTraits `c.OhJupyter.<name>` of kernel and server, keys of the table"
    yield "`[core]` of an OpenHands `config.toml`, and environment variables. The file in a"
    yield "notebook's folder loosens nothing until you trust it with `%oh_trust`.\n"
    yield "| setting | default | variables | |\n| --- | --- | --- | --- |"
    for setting in fields(Settings):
        default = "" if setting.default in (MISSING, None) else f"`{setting.default!r}`"
        variables = ", ".join(f"`{name}`" for name in setting.metadata["variables"])
        help = cell(setting.metadata["help"])
        yield f"| `{setting.name}` | {default} | {variables} | {help} |"


def cell(text: str) -> str:
    """A text for a table: one line, in which nothing is taken for markup."""
    return re.sub(r"([|<>*_\[\]])", r"\\\1", " ".join(text.split()))


def rest() -> Iterator[str]:
    """The operations of the REST interface, by tag."""
    from oh_jupyter.server.handlers import tables

    described = tables.described()
    yield f"# REST interface\n\n{described['info']['description']}"
    yield "`GET /oh_jupyter/openapi.yaml` has all of it, with the schemas, in OpenAPI 3.1.\n"
    for tag in described["tags"]:
        yield f"## {tag['name']}\n\n{tag['description']}\n"
        for path, item in described["paths"].items():
            for method in METHODS:
                operation = item.get(method)
                if operation is not None and operation["tags"][0] == tag["name"]:
                    shared = item.get("parameters", ())
                    yield from an_operation(
                        described, f"{method.upper()} {path}", operation, shared
                    )


def an_operation(whole: Any, name: str, operation: Any, shared: Any) -> Iterator[str]:
    """One operation: what it does, what it takes, and what it answers."""
    yield f"### {name}\n\n{operation.get('summary', '')}\n"
    if "description" in operation:
        yield operation["description"]
    for parameter in (*shared, *operation.get("parameters", ())):
        found = resolved(whole, parameter)
        yield f"- `{found['name']}` ({found['in']}): {cell(found.get('description', ''))}"
    yield "\n| status | |\n| --- | --- |"
    for status, answer in operation["responses"].items():
        yield f"| {status} | {cell(resolved(whole, answer)['description'])} |"
    yield ""


def resolved(whole: Any, part: Any) -> Any:
    """A part of the description, where it stands if it is a reference."""
    if "$ref" not in part:
        return part
    for name in part["$ref"].removeprefix("#/").split("/"):
        whole = whole[name]
    return whole


def mcp_tools() -> Iterator[str]:
    """The MCP tools as agents see them."""
    from oh_jupyter.mcp_tools.tool_list import all_tools

    unused: Any = None  # tools know their kernel only when they are called
    found = all_tools(unused, unused)
    yield "# MCP tools\n\nThese are listed to agents that use `oh_jupyter` by MCP.\n"
    for tool in (tool for tool in found if tool.listed):
        yield f"## {tool.name}\n\n```text\n{tool.description}\n```\n"
        for name, about in tool.schema.get("properties", {}).items():
            needed = ", required" if name in tool.schema.get("required", ()) else ""
            kind = about.get("type", "any")
            yield f"- `{name}` ({kind}{needed}): {cell(about.get('description', ''))}"
        yield ""


def command_line() -> Iterator[str]:
    """The help of ``oh-jupyter`` and of its commands."""
    import argparse

    from oh_jupyter.cli.program import make_parser

    parser = make_parser()
    yield f"# Command line\n\n```text\n{parser.format_help()}```\n"
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    for name, command in commands.choices.items():
        yield f"## oh-jupyter {name}\n\n```text\n{command.format_help()}```\n"
