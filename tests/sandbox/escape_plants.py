"""Commands of an agent in its box that prepare or try an escape.

Each plant has a kind, which decides about a program of it that runs outside of the box:

- ``git``: no ordinary command of a person may run it.
- ``code``: files that a person's ``make`` or ``pytest`` is asked to run. Theirs is allowed, since
  an agent changes such files freely and the review names them; anything else may not run them.
- ``settings``: files that could widen the limits of the next box or kernel.
- ``race``: a path that changes between check and use.
- ``direct``: an attempt that succeeds at once, or never.
"""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Callable
from typing import Literal, NamedTuple

from tests.sandbox.escape_world import REPOSITORIES, SECRETS, World

Kind = Literal["git", "code", "settings", "race", "direct"]

HOOKS = ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-merge")
MODULES = (
    "markitdown", "html", "random", "json", "colorsys", "fsspec", "nbformat", "yaml", "pyflakes",
    "tree_sitter", "charset_normalizer", "orjson", "sitecustomize", "usercustomize", "psutil",
)  # fmt: skip
"""Names of modules that our processes import, or that Python imports at its start."""

LINKS = ("link", "note.md", "linked.ipynb", "package/deep")
"""Paths in the workspace that plants replace by links; operations use the same ones."""

RACES = ("raced", "package/raced", "sub")
RACE_SECONDS = 0.4
RACING = "racing"
"""File that a race makes when it begins, and for which its command waits."""

SWAP_FILE = """
import os
open("racing", "w").close()
for turn in iter(int, 1):
    for target in {targets!r}:
        try:
            os.path.lexists({path!r}) and os.unlink({path!r})
            open({path!r}, "w").write("a\\n")
            os.symlink(target, {path!r} + ".new")
            os.replace({path!r} + ".new", {path!r})
        except OSError:
            pass
"""

SWAP_DIRECTORY = """
import os
os.makedirs({path!r}, exist_ok=True)
open("racing", "w").close()
for turn in iter(int, 1):
    for target in {targets!r}:
        try:
            os.rename({path!r}, {path!r} + ".away")
            os.symlink(target, {path!r})
            os.unlink({path!r})
        except OSError:
            pass
        try:
            os.rename({path!r} + ".away", {path!r})
        except OSError:
            pass
"""


class Plant(NamedTuple):
    """A command in the box, and the path that the agent's next operation uses, "" for any."""

    kind: Kind
    name: str
    command: str
    path: str = ""


def put(path: str, content: str) -> str:
    """Return a command that writes a file, in one of the ways in which shells do."""
    return f"printf %s {shlex.quote(content)} >{shlex.quote(path)}"


def _ways_to_write(dice: random.Random, path: str, content: str) -> str:
    """Return a command that writes a file or replaces it."""
    quoted = shlex.quote(path)
    return dice.choice(
        [
            put(path, content),
            put(path, content).replace(" >", " >>"),
            f"{put('c.tmp', content)}; mv -f c.tmp {quoted}",
            f"{put('c.tmp', content)}; cp --remove-destination c.tmp {quoted}",
            f"{put('c.tmp', content)}; ln -sfn $PWD/c.tmp {quoted}",
            f"{put('c.tmp', content)}; ln -f c.tmp {quoted}",
            f"rm -f {quoted}; {put(path, content)}",
        ]
    )


def _hook(dice: random.Random, world: World) -> Plant:
    name = dice.choice(HOOKS)
    path = f"{dice.choice(REPOSITORIES)}/hooks/{name}"
    start = dice.choice(["", "mv .git/hooks h; mkdir -p .git/hooks; ", "mv .git g; cp -r g .git; "])
    write = _ways_to_write(dice, path, world.program(f"git:{name}"))
    return Plant("git", f"hook {name}", f"{start}{write}; chmod +x {path}")


def _configuration(dice: random.Random, world: World) -> Plant:
    repository = dice.choice(REPOSITORIES)
    name = dice.choice(["config", "config", "config.worktree"])
    write = _ways_to_write(dice, f"{repository}/{name}", world.configuration("git:config"))
    return Plant("git", name, write)


def _evil_directory(world: World, name: str) -> str:
    """Return a command that makes another git directory, which would run a program."""
    change = put("evil/config", world.configuration(f"git:{name}"))
    return f"mkdir -p evil/objects evil/refs; cp .git/HEAD evil; {change}"


def _commondir(dice: random.Random, world: World) -> Plant:
    make = _evil_directory(world, "commondir")
    target = dice.choice(["../evil", "../../evil", f"{world.work}/evil"])
    path = f"{dice.choice(REPOSITORIES)}/commondir"
    return Plant("git", "commondir", f"{make}; {_ways_to_write(dice, path, target)}")


def _pointer(dice: random.Random, world: World) -> Plant:
    """Lead the submodule's ``.git``, which is a file, to another directory."""
    change = _ways_to_write(dice, "part/.git", "gitdir: ../evil\n")
    return Plant("git", "pointer", f"{_evil_directory(world, 'pointer')}; {change}")


def _filter(dice: random.Random, world: World) -> Plant:
    """Name a filter for files; its command would have to be in a configuration."""
    path = dice.choice([".gitattributes", ".git/info/attributes", "package/.gitattributes"])
    command = f"echo git:filter >>{world.trace}"
    tries = f"mkdir -p .git/info; git config filter.evil.clean {shlex.quote(command)}"
    return Plant("git", "filter", f"{tries}; {put(path, '* filter=evil diff=evil merge=evil')}")


def _module(dice: random.Random, world: World) -> Plant:
    name = dice.choice(MODULES)
    folder = dice.choice(["", "", "package/"])
    return Plant("code", name, put(f"{folder}{name}.py", world.module(f"code:{name}")))


def all_modules(world: World) -> str:
    """Return a command that plants every module, for processes that start afterwards."""
    return "; ".join(put(f"{name}.py", world.module(f"code:{name}")) for name in MODULES)


def _build_file(dice: random.Random, world: World) -> Plant:
    name = dice.choice(["conftest.py", "Makefile", "evil.pth", "git"])
    if name == "conftest.py":
        content = world.module("code:conftest")
    elif name == "Makefile":
        content = f"all:\n\techo code:make >>{world.trace}\n"
    elif name == "evil.pth":
        content = f"import os; os.system('echo code:pth >>{world.trace}')\n"
    else:
        content = world.program("code:git")
    return Plant("code", name, f"{put(name, content)}; chmod +x {name}")


def _settings(dice: random.Random, world: World) -> Plant:
    line = dice.choice(
        [
            f'workspace_dir = "{world.outside}"',
            f'sandbox_writable = ["{world.outside}"]',
            f'sandbox_visible = ["{world.home}"]',
            'confirmation = "never"',
            'sandbox = "off"',
            'sandbox_network = "host"',
        ]
    )
    name = dice.choice(["config.toml", ".openhands/config.toml", "oh_jupyter.toml"])
    content = f"[core]\n{line}\n"
    return Plant("settings", name, f"mkdir -p .openhands; {put(name, content)}")


def _editor_file(dice: random.Random, world: World) -> Plant:
    path = dice.choice(
        [".mcp.json", ".vscode/tasks.json", ".claude/settings.json", ".idea/workspace.xml",
         ".ipynb_checkpoints/book-checkpoint.ipynb"]
    )  # fmt: skip
    folder = path.split("/")[0] if "/" in path else ""
    start = dice.choice(["", f"rm -rf {folder}; ", f"mv {folder} away; "]) if folder else ""
    make = f"mkdir -p {folder}; " if folder else ""
    return Plant("settings", path, f"{start}{make}{_ways_to_write(dice, path, world.mark)}")


def _link(dice: random.Random, world: World) -> Plant:
    path, target = dice.choice(LINKS), dice.choice(targets(world))
    return Plant("race", f"link {path}", f"rm -rf {path}; ln -sfn {target} {path}", path)


def _race(dice: random.Random, world: World) -> Plant:
    path = dice.choice(RACES)
    template, chosen = SWAP_FILE, [world.home / dice.choice(SECRETS), world.home / ".bashrc"]
    if path == "sub":
        template, chosen = SWAP_DIRECTORY, [world.home, world.outside]
    code = template.format(path=path, targets=[str(each) for each in chosen])
    program = f"timeout {RACE_SECONDS} {sys.executable} -I -S -c {shlex.quote(code)}"
    wait = f"for i in $(seq 100); do [ -e {RACING} ] && break; sleep 0.005; done"
    return Plant("race", f"race of {path}", f"rm -f {RACING}; {program} & {wait}", path)


def _direct(dice: random.Random, world: World) -> Plant:
    target, secret = dice.choice(targets(world)), world.home / dice.choice(SECRETS)
    command = dice.choice(
        [
            f"echo {world.mark} >>{target}",
            f"echo {world.mark} >{world.outside}/new",
            f"echo {world.mark} >{world.home}/.zshrc",
            f"ln -f {target} hard; echo {world.mark} >>hard",
            f"mv {target} .; touch {target}",
            f"rm -f {target}",
            f"cat {secret}",
            f"cp {secret} copy; cat copy",
            f"cat /proc/*/root{secret}",
            f"grep -rh secret- {world.home}",
            f"cat {world.root}/runtime/* {world.root}/state/*/*",
            "unshare -Urm sh -c 'umount -l .git/config; echo x >>.git/config'",
            f"echo x >>{world.root}/state/oh_jupyter/ledger.db",
        ]
    )
    return Plant("direct", command, f"{command} 2>&1")


def targets(world: World) -> list[str]:
    """Return files outside of the workspace that an agent would like to read or change."""
    names = (".bashrc", ".zshenv", ".ssh/id_rsa", ".netrc", ".local/share/new", ".gitconfig")
    more = [world.outside / "file", world.outside / "new", world.root / "etc" / "cron.d" / "job"]
    return [*(str(world.home / name) for name in names), *map(str, more)]


PLANTS: tuple[Callable[[random.Random, World], Plant], ...] = (
    *(_hook, _configuration, _commondir, _pointer, _filter, _module, _module, _build_file),
    *(_settings, _editor_file, _link, _link, _race, _race, _direct, _direct),
)
"""Generators of plants; one that is named twice is chosen twice as often."""


def plant(dice: random.Random, world: World) -> Plant:
    """Return a random plant."""
    return dice.choice(PLANTS)(dice, world)
