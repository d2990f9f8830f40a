"""``%oh_run``: commands in the shell that person and agent share."""

from __future__ import annotations

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument

from oh_jupyter.events import Action, CmdRunAction, IPythonRunCellAction, Observation
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.magics.base import OhMagics
from oh_jupyter.kernel.magics.completion import complete_path
from oh_jupyter.kernel.magics.options import leading_options, magic_options, print_help, seconds
from oh_jupyter.shell.bash.parsing import ends_with_semicolon


@magics_class
class RunMagics(OhMagics):
    """Commands and cells."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self.complete(
            "oh_run",
            {"FILE": lambda argument: complete_path(argument, oh.cwd)},
            arguments="FILE...",
            leading_options=True,
        )

    @no_var_expand
    @magic_options(
        examples="""
        %oh_run git status
        %oh_run --timeout 60 pytest -q
        found = %oh_run ls
        %oh_run --input C-c
        """,
        is_leading=True,
    )
    @argument("-t", "--timeout", type=seconds, metavar="SECONDS", help="hard time limit")
    @argument("-i", "--input", action="store_true", help="send it to the running command")
    @argument("-b", "--blocking", action="store_true", help="wait, however long it is silent")
    @argument("-s", "--static", action="store_true", help="use a temporary shell")
    @argument("--sandbox", action="store_true", help="use a shell in a sandbox of your own")
    @argument("-c", "--cell", action="store_true", help="run it as a Python cell, like agents")
    @line_cell_magic
    def oh_run(self, line: str, cell: str | None = None) -> Observation | None:
        """Run a command in the shell that person and agent share.

        ``%oh_run [options] COMMAND`` runs a line; ``%oh_run`` alone fetches more output
        of a command that is still running; ``%%oh_run [options]`` runs a script of
        several lines. The value is the Observation; a semicolon at the end hides it.
        """
        options, rest = leading_options(self.oh_run, line)
        if options.help:
            print_help(self.oh_run)
            return None
        if options.cell:
            code = rest if cell is None else cell
            output = self._run_live(IPythonRunCellAction(code), options.timeout)
            return None if code.rstrip().endswith(";") else output
        command = rest if cell is None else _script(rest, cell)
        action = CmdRunAction(
            command,
            is_input=options.input,
            blocking=options.blocking,
            is_static=options.static,
            sandbox=options.sandbox,
        )
        observation = self._run_live(action, options.timeout)
        if observation.reason_code == "nothing_runs" and not options.input:
            raise UsageError(
                "say what to run: %oh_run COMMAND. Without a command, it shows more output of a "
                "running one, and none is running"
            )
        return None if ends_with_semicolon(command if cell is None else cell) else observation

    def _run_live(self, action: Action, timeout: float | None) -> Observation:
        """Execute an Action, and show its output so far in the cell."""
        action.timeout = timeout
        with self.oh.host.live_output(action):
            return self.oh.execute(action)


def _script(first: str, cell: str) -> str:
    """Return the body of a cell as one command, because the shell takes one at a time."""
    lines = [line for line in (first, cell.rstrip("\n")) if line.strip()]
    body = "\n".join(lines)
    return f"{{ {body}\n}}" if "\n" in body else body
