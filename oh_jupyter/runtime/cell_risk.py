"""Risks of a Python cell that a person should see first, read from its syntax tree.

Only readable effects are found: names that the cell imports or assigns or that the notebook holds,
and constant paths. Obfuscated code and the bodies of called functions are not analysed.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import pathlib
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator
from types import ModuleType

from oh_jupyter.runtime.reasons import Reason

Lookup = Callable[[str], object]
"""Returns a variable of the notebook by name, or None."""

CommandRisks = Callable[[str], list[Reason]]
"""Returns the reasons to ask about a shell command."""

COMMAND_CALLS = re.compile(
    r"os\.(system|popen|(exec|spawn|posix_spawn)\w*)|pty\.spawn|commands\.getoutput"
    r"|subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)"
    r"|asyncio\.create_subprocess_(shell|exec)"
    r"|get_ipython\(\)\.(system|getoutput|system_piped|system_raw)"
)
ENDING_CALLS = re.compile(
    r"(exit|quit|os\._exit|os\.abort|os\.(exec)\w*|posix\._exit)"
    r"|.*\.(do_shutdown|shutdown_kernel|restart_kernel|ask_exit|exit_now)"
    r"|get_ipython\(\)\.(reset|reset_selective|user_ns\.clear)|globals\(\)\.clear"
    r"|signal\.raise_signal"
)
REMOVING_CALLS = re.compile(r"(.*\.)?rmtree")
WRITING_CALLS: dict[str, int] = {
    **{f"os.{name}": 0 for name in ("remove", "unlink", "rmdir", "removedirs", "truncate")},
    **{f"os.{name}": 0 for name in ("chmod", "chown", "mkdir", "makedirs")},
    **{f"os.{name}": 1 for name in ("symlink", "link")},
    **{f"shutil.{name}": 1 for name in ("copy", "copy2", "copyfile", "copytree")},
    "shutil.chown": 0,
    **{f"numpy.{name}": 0 for name in ("save", "savez_compressed")},
    **dict.fromkeys(("joblib.dump", "torch.save", "urllib.request.urlretrieve"), 1),
}
"""Functions that change a file, with the position of the path argument."""

PATH_KEYWORDS = frozenset({"path", "dst", "file", "filename", "fname", "path_or_buf", "name", "f"})
"""Names of that argument in a call with keywords."""

MOVING_CALLS = frozenset({"os.rename", "os.replace", "os.renames", "shutil.move"})
"""Functions that change both of their paths."""

WRITING_METHODS = frozenset(
    {
        *("write_text", "write_bytes", "unlink", "rmdir", "touch", "chmod", "mkdir"),
        *("rename", "replace", "symlink_to", "hardlink_to"),
    }
)
EXPORTING_METHODS = frozenset(
    {
        *("to_csv", "to_excel", "to_feather", "to_hdf", "to_html", "to_json", "to_parquet"),
        *("to_pickle", "savefig", "savez", "savetxt", "tofile", "extractall"),
    }
)
"""Methods of data frames, figures and arrays that write the file in their first argument."""

CREDENTIALS = (
    *("~/.ssh", "~/.aws", "~/.gnupg", "~/.netrc", "~/.config/gcloud", "~/.azure", "~/.kube"),
    *("~/.docker/config.json", "~/.git-credentials", "~/.pypirc", "~/.npmrc", "~/.config/gh"),
    *("~/.local/share/keyrings", "~/.local/share/jupyter/runtime"),
)
RUNS_CODE = frozenset({"time", "timeit", "prun", "memit", "mprun", "lprun", "debug", "capture"})
"""Magics with Python code after their options."""

COMMAND_ALIASES = frozenset({"cat", "cp", "ln", "mkdir", "mv", "rm", "rmdir"})
"""Shell commands that IPython runs without ``%`` unless a variable has the name."""

LIMITS = ("confirmation", "sandbox")
"""Beginnings of the names of settings that limit agents."""
EVERYBODY_WRITES = 0o002

MAX_DEPTH = 20
"""Maximum depth of followed names, nested expressions and code in strings."""

_MAGIC = re.compile(r"^(\s*)(?:[\w, \t]+=\s*)?(!{1,2}|%{1,2})\s*(.*)$")
_OPTIONS = re.compile(r"^(?:-\w+(?:\s*\d+)?\s+)*")
_SHELL_MAGICS = re.compile(r"%%\s*(?:bash|sh|script|oh_run|system|sx)\b")


def cell_risks(
    code: str,
    workspace_dir: str,
    command_risks: CommandRisks,
    lookup: Lookup = lambda name: None,
) -> list[Reason]:
    """Return the reasons to ask a person about a cell.

    Args:
        code: The cell, including IPython's magics and shell lines.
        workspace_dir: Directory in which files may be changed, and base of relative paths.
        command_risks: Returns the reasons to ask about a shell command.
        lookup: Returns a variable of the notebook by name.

    Returns:
        The reasons, each once.
    """
    reader = _CellReader(workspace_dir, command_risks, lookup)
    reader.read(code)
    return list(dict.fromkeys(reader.reasons))


class _CellReader:
    """Walks the calls of a cell and collects the reasons to ask."""

    def __init__(self, workspace_dir: str, command_risks: CommandRisks, lookup: Lookup) -> None:
        self.reasons: list[Reason] = []
        self._workspace = os.path.realpath(workspace_dir)
        self._command_risks = command_risks
        self._lookup = lookup
        self._assigned: dict[str, ast.expr] = {}
        self._imported: dict[str, str] = {}

    def read(self, code: str, depth: int = 0) -> None:
        """Analyse a cell, or code in one of its strings."""
        if depth > MAX_DEPTH:
            return
        if _SHELL_MAGICS.match(code.lstrip()):
            self.reasons += self._command_risks(code)
            return
        lines = [self._without_magic(line, depth) for line in code.splitlines()]
        try:
            tree = ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self.reasons += self._command_risks(code)
            return
        for node in ast.walk(tree):
            self._note_names(node)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self._read_call(node, depth)
                self._read_path(node)
            elif isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                self._read_path(node)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if node.attr.startswith(LIMITS):
                    self.reasons.append(Reason("changes_confirmation"))
            elif isinstance(node, ast.Expr) and self._dotted(node.value) in ("exit", "quit"):
                self.reasons.append(Reason("ends_kernel"))  # IPython calls them

    def _without_magic(self, line: str, depth: int) -> str:
        """Analyse a line of IPython's syntax and return Python in its place."""
        match = _MAGIC.match(line)
        if match is None:
            word = line.partition(" ")[0]
            if word in COMMAND_ALIASES and self._lookup(word) is None:
                self._read_command(line)
            return line
        indent, _, text = match.groups()
        self._read_command(text)
        name, _, rest = text.partition(" ")
        if name == "config" and any(f".{limit}" in rest for limit in LIMITS):
            self.reasons.append(Reason("changes_confirmation"))
        elif name in ("reload_ext", "unload_ext") and rest.strip().startswith("oh_jupyter"):
            self.reasons.append(Reason("ends_runtime"))
        elif name in RUNS_CODE:
            self.read(_OPTIONS.sub("", rest), depth + 1)
        elif name in ("reset", "reset_selective"):
            self.reasons.append(Reason("deletes_variables"))
        elif name in ("writefile", "file", "save", "logstart", "oh_edit"):
            for word in rest.split():
                self._check_write(word)
        return f"{indent}pass"

    def _read_command(self, command: str) -> None:
        """Check a shell command, and the paths in it."""
        self.reasons += self._command_risks(command)
        with contextlib.suppress(ValueError):  # unbalanced quotes
            for word in shlex.split(command):
                self._check_credentials(word)

    def _note_names(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                self._imported[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self._imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            if isinstance(node.targets[0], ast.Name):
                self._assigned[node.targets[0].id] = node.value
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self._assigned[item.optional_vars.id] = item.context_expr

    def _read_call(self, call: ast.Call, depth: int) -> None:
        name = self._dotted(call.func)
        if COMMAND_CALLS.fullmatch(name):
            for command in self._commands(call):
                self._read_command(command)
        if ENDING_CALLS.fullmatch(name) or self._kills_itself(name, call):
            self.reasons.append(Reason("ends_kernel"))
        if name in ("exec", "eval", "compile", "get_ipython().run_cell", "get_ipython().ex"):
            self._read_text(call, 0, depth)
        elif name == "get_ipython().run_cell_magic":
            self._read_text(call, 2, depth, prefix=f"%%{self._argument(call, 0) or ''}\n")
        elif name in ("get_ipython().run_line_magic", "get_ipython().magic"):
            text = " ".join(str(self._fold(argument) or "") for argument in call.args)
            self.read(f"%{text.lstrip('%')}", depth + 1)
        self._read_file_call(name, call)

    def _read_file_call(self, name: str, call: ast.Call) -> None:
        """Check which files a call removes or writes."""
        method = name.rpartition(".")[2]
        if REMOVING_CALLS.fullmatch(name):
            path = self._argument(call, 0, "path")
            if path is None:
                self.reasons.append(Reason("removes_unnamed_tree"))
            elif not self._is_own(path, below=True):
                self.reasons.append(Reason("removes_tree", (path,)))
        elif name in ("open", "io.open", "builtins.open", "codecs.open"):
            if set(str(self._argument(call, 1, "mode") or "")) & set("wax+"):
                self._check_write(self._argument(call, 0, "file"))
        elif name in WRITING_CALLS:
            self._check_write(self._path_argument(call, WRITING_CALLS[name]))
        elif name == "os.open" and "O_RDONLY" not in ast.unparse(call):
            self._check_write(self._argument(call, 0, "path"))
        elif name in MOVING_CALLS:
            self._check_write(self._argument(call, 0, "src"))
            self._check_write(self._argument(call, 1, "dst"))
        elif name.startswith("pathlib.Path()") and isinstance(call.func, ast.Attribute):
            if method in WRITING_METHODS or (
                method == "open" and set(str(self._argument(call, 0, "mode") or "")) & set("wax+")
            ):
                self._check_write(self._text(call.func.value))
        elif method in EXPORTING_METHODS:
            self._check_write(self._path_argument(call, 0))
        if method in ("chmod", "fchmod") and self._opens_to_everybody(call):
            self.reasons.append(Reason("opens_files"))

    def _check_write(self, path: str | None) -> None:
        if path is not None and not self._is_own(path):
            self.reasons.append(Reason("writes_outside", (path,)))

    def _is_own(self, path: str, *, below: bool = False) -> bool:
        """Return whether a path is in the workspace or temporary; ``below`` excludes roots."""
        if "\0" in path or path.startswith(("/dev/null", "/dev/std", "/dev/fd", "/dev/shm")):
            return True
        if re.match(r"[a-zA-Z][\w+.-]+://", path):  # a store's URL
            return True
        target = os.path.realpath(os.path.join(self._workspace, os.path.expanduser(path)))
        roots = (self._workspace, os.path.realpath(tempfile.gettempdir()))
        if target in roots:
            return not below
        return any(target.startswith(root.rstrip("/") + "/") for root in roots)

    def _read_path(self, node: ast.expr) -> None:
        text = self._text(node)
        if text is not None:
            self._check_credentials(text)

    def _check_credentials(self, text: str) -> None:
        """Check whether a text is a path to credentials."""
        if len(text) > 4096 or "\0" in text or "/" not in text:
            return
        target = os.path.abspath(os.path.join(self._workspace, os.path.expanduser(text)))
        for credential in CREDENTIALS:
            root = os.path.expanduser(credential)
            if target == root or target.startswith(root + "/"):
                self.reasons.append(Reason("uses_credentials", (credential,)))

    def _kills_itself(self, name: str, call: ast.Call) -> bool:
        return name in ("os.kill", "os.killpg") and any(
            self._dotted(argument) in ("os.getpid()", "os.getpgid()", "os.getppid()")
            for argument in call.args
        )

    def _opens_to_everybody(self, call: ast.Call) -> bool:
        modes = [self._fold(argument) for argument in call.args]
        return any(isinstance(mode, int) and mode & EVERYBODY_WRITES for mode in modes)

    def _read_text(self, call: ast.Call, position: int, depth: int, prefix: str = "") -> None:
        text = self._argument(call, position)
        if text is not None:
            self.read(prefix + text, depth + 1)

    def _commands(self, call: ast.Call) -> Iterator[str]:
        """Yield the constant shell commands that a call runs."""
        commands = [each.value for each in call.keywords if each.arg in ("args", "cmd", "command")]
        for argument in (*call.args, *commands):
            value = self._fold(argument)
            if isinstance(value, str):
                yield value
            elif isinstance(value, list):
                yield shlex.join(str(word) for word in value)
        words = [value for argument in call.args if isinstance(value := self._fold(argument), str)]
        if len(words) > 1:
            yield shlex.join(words)

    def _argument(self, call: ast.Call, position: int, keyword: str = "") -> str | None:
        """Return the text of an argument, or None if it is not constant."""
        for each in call.keywords:
            if each.arg == keyword:
                return self._text(each.value)
        return self._text(call.args[position]) if len(call.args) > position else None

    def _path_argument(self, call: ast.Call, position: int) -> str | None:
        for each in call.keywords:
            if each.arg in PATH_KEYWORDS:
                return self._text(each.value)
        return self._argument(call, position)

    def _text(self, node: ast.expr) -> str | None:
        value = self._fold(node)
        return value if isinstance(value, str) else None

    def _dotted(self, node: ast.expr, depth: int = 0) -> str:
        """Return an expression's name, such as ``pathlib.Path().unlink``, or ""."""
        if depth > MAX_DEPTH:
            return ""
        if isinstance(node, ast.Name):
            if node.id in self._imported:
                return _plain_name(self._imported[node.id])
            if node.id in self._assigned:
                return self._dotted(self._assigned[node.id], depth + 1)
            return _name_of(self._lookup(node.id)) or node.id
        if isinstance(node, ast.Attribute):
            return _plain_name(f"{self._dotted(node.value, depth + 1)}.{node.attr}")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._dotted(node.left, depth + 1)
        if not isinstance(node, ast.Call):
            return ""
        name = self._dotted(node.func, depth + 1)
        if name in ("__import__", "importlib.import_module"):
            return self._argument(node, 0) or ""
        if name == "getattr" and len(node.args) > 1:
            return f"{self._dotted(node.args[0], depth + 1)}.{self._text(node.args[1]) or ''}"
        if re.fullmatch(r"pathlib\.Path(\.home|\.cwd)?|pathlib\.Path\(\)\.\w+", name):
            return "pathlib.Path()"
        return f"{name}()"

    def _fold(self, node: ast.expr, depth: int = 0) -> object:
        """Evaluate a constant text, number or list; None if it is not constant."""
        if depth > MAX_DEPTH:
            return None
        if isinstance(node, ast.Constant):
            return os.fsdecode(node.value) if isinstance(node.value, bytes) else node.value
        if isinstance(node, ast.Name):
            if node.id in self._assigned:
                return self._fold(self._assigned[node.id], depth + 1)
            value = self._lookup(node.id)
            if isinstance(value, pathlib.PurePath):
                return str(value)
            return value if isinstance(value, str | int) else None
        if isinstance(node, ast.List | ast.Tuple):
            items = [self._fold(item, depth + 1) for item in node.elts]
            return None if None in items else items
        if isinstance(node, ast.JoinedStr):
            parts = [
                self._fold(part.value if isinstance(part, ast.FormattedValue) else part, depth + 1)
                for part in node.values
            ]
            return None if None in parts else "".join(map(str, parts))
        if isinstance(node, ast.BinOp):
            left, right = self._fold(node.left, depth + 1), self._fold(node.right, depth + 1)
            if isinstance(left, str) and isinstance(right, str):
                if isinstance(node.op, ast.Div):
                    return os.path.join(left, right)
                return left + right if isinstance(node.op, ast.Add) else None
            return None
        if isinstance(node, ast.Subscript):
            if self._dotted(node.value, depth + 1) == "os.environ":
                return os.environ.get(str(self._fold(node.slice, depth + 1)))
            return None
        return self._fold_call(node, depth) if isinstance(node, ast.Call) else None

    def _fold_call(self, call: ast.Call, depth: int) -> object:
        """Evaluate a call that makes a path."""
        name = self._dotted(call.func, depth + 1)
        values = [self._fold(argument, depth + 1) for argument in call.args]
        texts = [value for value in values if isinstance(value, str)]
        if name in ("pathlib.Path.home",):
            return os.path.expanduser("~")
        if name in ("pathlib.Path.cwd", "os.getcwd"):
            return self._workspace
        if name in ("os.getenv", "os.environ.get"):
            return os.environ.get(texts[0]) if texts else None
        if len(texts) < len(values):
            return None
        if name in ("pathlib.Path", "os.path.join", "os.fspath", "str", "os.path.abspath"):
            return os.path.join(*texts) if texts else None
        if name == "os.path.expanduser":
            return os.path.expanduser(texts[0]) if texts else None
        if name.startswith("pathlib.Path()") and isinstance(call.func, ast.Attribute):
            base = self._fold(call.func.value, depth + 1)
            if isinstance(base, str) and call.func.attr in (
                *("expanduser", "resolve", "absolute", "joinpath", "as_posix"),
            ):
                return os.path.join(base, *texts)
        return None


_PLAIN_NAMES = {
    "posix": "os", "nt": "os", "builtins": "", "pathlib._local": "pathlib",
    "posixpath": "os.path", "ntpath": "os.path", "_io": "io",
}  # fmt: skip


def _plain_name(name: str) -> str:
    """Return the documented name of a function."""
    module, _, rest = name.rpartition(".")
    plain = _PLAIN_NAMES.get(module, module)
    if rest in ("PosixPath", "WindowsPath", "PurePath") and plain == "pathlib":
        rest = "Path"
    return f"{plain}.{rest}" if plain else rest


def _name_of(value: object) -> str:
    """Return the name of a notebook's object, or "" if it has no telling one."""
    if isinstance(value, ModuleType):
        return _PLAIN_NAMES.get(value.__name__, value.__name__)
    if isinstance(value, pathlib.PurePath):
        return "pathlib.Path()"
    if getattr(value, "__qualname__", "").endswith("InteractiveShell.get_ipython"):
        return "get_ipython"
    if inspect.isroutine(value) or inspect.isclass(value):
        return _plain_name(f"{getattr(value, '__module__', '')}.{value.__qualname__}")
    if type(value).__name__.endswith("InteractiveShell"):
        return "get_ipython()"
    return ""
