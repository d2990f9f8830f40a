"""Imports run downward, and the face of the package is light."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import oh_jupyter
from oh_jupyter import errors

PACKAGE = Path(oh_jupyter.__file__).parent

ROOMS = {"storage", "editor", "shell", "browser", "skills", "checkpoints", "sandbox"}
BASE = {
    "errors",
    "_version",
    "ansi",
    "background",
    "containment",
    "control_messages",
    "descriptors",
    "import_guard",
    "installed",
    "output_text",
    "loopback",
    "runs_when",
    "schema",
    "text",
    "trace_context",
    "visibility",
}
LOW = BASE | {
    *("documents", "events", "config", "process", "locks", "edit_lock", "writes", "policy"),
    *("exclusion", "liveness", "state"),
}
MAY_IMPORT = {
    "errors": set(),
    "_version": set(),
    "_guardian": set(),
    "locks": BASE,
    "vulnerabilities": BASE,
    "server_notes": BASE,
    "edit_lock": BASE | {"exclusion", "locks", "private_folder"},
    "exclusion": {"locks"},
    "private_folder": set(),
    "liveness": {"locks"},
    "ansi": set(),
    "output_text": {"text"},
    "loopback": set(),
    "background": set(),
    "containment": set(),
    "control_messages": set(),
    "descriptors": set(),
    "import_guard": {"containment", "installed"},
    "runs_when": {"containment", "descriptors", "installed"},
    "installed": {"containment"},
    "schema": set(),
    "text": set(),
    "trace_context": set(),
    "visibility": {"containment"},
    "events": BASE,
    "policy": BASE,
    "config": BASE | {"policy"},
    "state": BASE | {"config", "exclusion", "private_folder"},
    "trust": BASE | {"config", "state"},
    "writes": BASE | {"state"},
    "process": BASE,
    "documents": BASE | {"process"},
    "mcp_sdk": BASE,
    "operations": BASE | {"events"},
    "mcp_tools": BASE | {"events", "mcp_sdk", "operations"},
    "storage": LOW,
    "editor": LOW,
    "shell": LOW,
    "browser": LOW,
    "skills": LOW | {"editor"},
    "checkpoints": LOW,
    "cells": LOW,
    "sandbox": LOW,
    "boxed_kernel": BASE | {"config", "policy", "sandbox", "trust"},
    "plugins": LOW | ROOMS | {"cells"},
    "runtime": LOW | ROOMS | {"cells", "plugins", "mcp_sdk", "trust"},
    "evaluation": LOW | {"browser", "runtime", "storage", "mcp_sdk", "agents", "client", "trust"},
    "agents": LOW | ROOMS | {"cells", "plugins", "runtime", "mcp_sdk"},
    "logs": BASE | {"events"},
    "traits": BASE | {"config", "trust"},
    "kernel": LOW
    | {"operations"}
    | ROOMS
    | {
        "agents",
        "mcp_sdk",
        "mcp_tools",
        "cells",
        "client",
        "doctor",
        "server_notes",
        "evaluation",
        "plugins",
        "runtime",
        "traits",
        "trust",
        "logs",
    },
    "openhands": LOW | {"runtime", "kernel", "client"},
    "server": BASE
    | {"operations"}
    | {
        "events",
        "config",
        "edit_lock",
        "state",
        "writes",
        "storage",
        "traits",
        "trust",
        "logs",
        "mcp_sdk",
        "mcp_tools",
        "vulnerabilities",
        "server_notes",
        "locks",
    },
    "client": BASE | {"events", "config", "process"},
    "adapters": BASE | {"events", "client"},
    "hub": BASE,
    "connect": BASE | {"events", "config", "server", "client"},
    "doctor": LOW | ROOMS | {"agents", "runtime", "trust", "vulnerabilities"},
    "cli": BASE
    | {"boxed_kernel", "sandbox", "browser", "server", "client", "connect", "config", "doctor"}
    | {"events", "evaluation", "hub", "state", "trust"},
    "testing": BASE | {"cells", "storage"},
    "__init__": BASE | {"kernel", "server"},
}
JUPYTER = {"IPython", "ipykernel", "tornado", "traitlets", "jupyter_client", "jupyter_server"}
# Plugins run cells in kernels of their own; what they need for that is no part of the kernel.
MAY_BE_A_CLIENT = {"cells", "plugins", "testing"}
MCP_SDK = {"mcp", "mcp_types", "httpx2"}
MAY_USE_JUPYTER = {"boxed_kernel", "traits", "kernel", "server", "hub", "__init__", "cli", "doctor"}
SOURCES = sorted(
    path for path in PACKAGE.rglob("*.py") if "labextension" not in path.relative_to(PACKAGE).parts
)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


@functools.cache
def imported(path: Path, for_type_checkers: bool = False) -> frozenset[str]:
    """Dotted names that a module imports, those for type checkers left out unless asked for."""
    names: set[str] = set()
    skipped = {
        inner
        for node in nodes_of(path)
        if not for_type_checkers
        and isinstance(node, ast.If)
        and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    for node in nodes_of(path):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            module = node.module or ""
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def top_names(path: Path, for_type_checkers: bool = False) -> set[str]:
    """Packages that a module imports."""
    return {name.split(".")[0] for name in imported(path, for_type_checkers)}


def modules_of(room: str) -> list[Path]:
    return [path for path in SOURCES if room_of(path) == room]


in_each_room = pytest.mark.parametrize("room", sorted({room_of(path) for path in SOURCES}))


@in_each_room
def test_imports_run_downward(room: str) -> None:
    allowed = MAY_IMPORT[room] | {room}
    for path in modules_of(room):
        targets = {
            name.split(".")[1] for name in imported(path) if name.startswith("oh_jupyter.")
        } & set(MAY_IMPORT)
        assert targets <= allowed, path


@in_each_room
def test_the_runtime_knows_nothing_of_jupyter(room: str) -> None:
    allowed = {"jupyter_client"} if room in MAY_BE_A_CLIENT else set()
    for path in [] if room in MAY_USE_JUPYTER else modules_of(room):
        assert not top_names(path) & (JUPYTER - allowed), path


@in_each_room
def test_one_package_alone_knows_the_mcp_sdk(room: str) -> None:
    for path in [] if room == "mcp_sdk" else modules_of(room):
        assert not top_names(path, for_type_checkers=True) & MCP_SDK, path


@in_each_room
def test_threads_are_started_in_one_place(room: str) -> None:
    for path in [] if room in {"background", "testing"} else modules_of(room):
        calls = [node.func for node in nodes_of(path) if isinstance(node, ast.Call)]
        names = {
            call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
            for call in calls
        }
        assert not names & {"Thread", "Timer", "ThreadPoolExecutor"}, path


def test_every_room_has_its_rule() -> None:
    assert {room_of(path) for path in SOURCES} <= set(MAY_IMPORT)


def part_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """A sub-package of a room, or a module beside the sub-packages."""
    return parts[:2]


def parts_of_a_room(room: str) -> dict[tuple[str, ...], set[tuple[str, ...]]]:
    """Graph of the parts of a room by all imports, also in functions and for type checkers."""
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for path in SOURCES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != room or parts == (room, "__init__"):
            continue
        targets = graph.setdefault(part_of(parts), set())
        for name in imported(path, for_type_checkers=True):
            target = tuple(name.split(".")[1:])
            if len(target) > 1 and target[0] == room and (PACKAGE / room / target[1]).exists():
                targets.add(part_of(target))
            elif len(target) > 1 and target[0] == room:
                module = PACKAGE / room / f"{target[1]}.py"
                targets |= {part_of(target)} if module.exists() else set()
    return {part: targets - {part} for part, targets in graph.items()}


@pytest.mark.parametrize(
    "room", sorted({room_of(path) for path in SOURCES if path.parent != PACKAGE})
)
def test_the_parts_of_a_room_import_downward(room: str) -> None:
    TopologicalSorter(parts_of_a_room(room)).prepare()


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_the_modules_of_a_room_import_downward(room: str) -> None:
    modules = {
        ".".join(("oh_jupyter", *path.relative_to(PACKAGE).with_suffix("").parts)): path
        for path in SOURCES
        if room_of(path) == room and path.name != "__init__.py"
    }
    TopologicalSorter(
        {
            name: (imported(path, for_type_checkers=True) & modules.keys()) - {name}
            for name, path in modules.items()
        }
    ).prepare()


def imports_its_own(folder: Path) -> bool:
    """Whether a package imports modules of its own."""
    name = ".".join(("oh_jupyter", *folder.relative_to(PACKAGE).parts))
    imports = imported(folder / "__init__.py") if (folder / "__init__.py").exists() else ()
    return any(f"{each}.".startswith(f"{name}.") for each in imports)


@in_each_room
def test_no_module_waits_for_a_package_that_imports_it(room: str) -> None:
    """Two threads importing both at once would give one of them half a package."""
    for path in modules_of(room):
        packages = [
            ".".join(("oh_jupyter", *folder.relative_to(PACKAGE).parts))
            for folder in (path.parent.parents if path.name == "__init__.py" else path.parents)
            if folder.is_relative_to(PACKAGE) and folder != PACKAGE and imports_its_own(folder)
        ]
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom):
                where = f"{path}:{node.lineno}"
                assert node.module not in packages, f"{where}: import from its module"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    waits = any(alias.name.startswith(f"{package}.") for package in packages)
                    assert not (alias.asname and waits), (
                        f"{path}:{node.lineno}: write: from {alias.name} import the names"
                    )


TWO_THREADS = """
import importlib, importlib.machinery, sys, threading, time
reached, proceed = threading.Event(), threading.Event()

class Gate:
    def find_spec(self, name, path, target=None):
        if name != "oh_jupyter.editor.arguments" or threading.current_thread() is not first:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            reached.set()
            assert proceed.wait(60)
            execute(module)

        spec.loader.exec_module = exec_module
        return spec

def where():
    frame = sys._current_frames().get(second.ident)
    return frame and (frame.f_code.co_name, id(frame), frame.f_lasti)

sys.meta_path.insert(0, Gate())
first = threading.Thread(target=importlib.import_module, args=["oh_jupyter.editor"])
second = threading.Thread(target=importlib.import_module, args=["oh_jupyter.editor.file_actions"])
first.start()
assert reached.wait(60)
second.start()
same = 0
while second.is_alive() and same < 20:
    before = where()
    second.join(0.01)
    same = same + 1 if where() == before else 0
proceed.set()
first.join()
second.join()
"""


def test_two_threads_may_import_a_room_at_once() -> None:
    """One is within the package, the other one comes to a module that the package imports."""
    done = subprocess.run(
        [sys.executable, "-c", TWO_THREADS], capture_output=True, text=True, timeout=150
    )
    assert (done.stderr, done.returncode) == ("", 0)


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


HEAVY = {
    "playwright",
    "s3fs",
    "gcsfs",
    "requests",
    "aiobotocore",
    "PIL",
    "pypdfium2",
    "mcp",
    "mcp_types",
    "acp",
    "pydantic",
    "oh_jupyter.state.ledger",
}


@pytest.mark.parametrize(
    "statement",
    [
        "import oh_jupyter",
        "import oh_jupyter.kernel.extension",
        "import oh_jupyter.storage",
        "import oh_jupyter.editor",
        "import oh_jupyter.browser",
        "import oh_jupyter.shell",
        "import oh_jupyter.skills",
    ],
)
def test_nothing_heavy_is_imported_before_its_first_use(statement: str) -> None:
    loaded = modules_after(statement)
    assert not loaded & HEAVY
    assert not {name for name in loaded if name.startswith("fsspec.implementations.")}


def test_the_package_itself_imports_little() -> None:
    loaded = modules_after("import oh_jupyter")
    assert {name for name in loaded if name.startswith("oh_jupyter")} == {
        "oh_jupyter",
        "oh_jupyter._version",
        "oh_jupyter.containment",
        "oh_jupyter.import_guard",
        "oh_jupyter.installed",
    }


def test_the_error_tree_is_drawn_as_it_is() -> None:
    drawn = set()
    for line in (errors.__doc__ or "").splitlines():
        words = line.replace("│", " ").replace("├──", " ").replace("└──", " ").split()
        if words and words[0].endswith("Error"):
            drawn.add(words[0])
    assert drawn == set(errors.__all__)
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.OhJupyterError)
