"""``%oh_store``: the file store of events and artefacts."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from oh_jupyter.kernel.display import Table
from oh_jupyter.kernel.magics.base import OhMagics, help_option, wants_help

__all__ = ["StoreMagics"]


@magics_class
class StoreMagics(OhMagics):
    """Look into the store, and keep things there."""

    @no_var_expand
    @output_can_be_silenced
    @magic_arguments()
    @help_option
    @argument("command", choices=["ls", "cat", "put", "get", "rm", "info"], help="what to do")
    @argument("path", nargs="?", default="", help="path in the store")
    @argument("file", nargs="?", help="a file on disk: what to put, or where to get it to")
    @line_cell_magic
    def oh_store(self, line: str, cell: str | None = None) -> Any:
        """Use the file store of this runtime.

        ``%oh_store ls|cat|info|rm PATH``, ``%oh_store put PATH FILE`` and ``get PATH FILE``
        for files on disk; ``%%oh_store put PATH`` stores the body of the cell. The value is
        what was found: a table of entries, or the text.
        """
        if wants_help(self.oh_store, line):
            return None
        options = parse_argstring(self.oh_store, self.expand(line))
        try:
            return self._done(options, cell)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as problem:
            raise UsageError(str(problem)) from problem

    def _done(self, options: Namespace, cell: str | None) -> Any:
        if options.command == "ls":
            return self._table(self.oh.store.list(options.path))
        if not options.path:
            raise UsageError(f"{options.command} needs a path in the store")
        if options.command == "put":
            return self._put(options.path, options.file, cell)
        if options.command == "get":
            return self._get(options.path, options.file)
        if options.command == "rm":
            self.oh.store.delete(options.path)
            return None
        if options.command == "info":
            return self._table([options.path])
        return self.oh.store.read(options.path)

    def _table(self, paths: list[str]) -> Table:
        rows = [
            (path, "" if path.endswith("/") else self.oh.store.info(path)["size"])
            for path in sorted(paths)
        ]
        return Table(("path", "size"), tuple(rows))

    def _put(self, path: str, file: str | None, cell: str | None) -> Table:
        if (file is None) == (cell is None):
            raise UsageError(
                "put takes its contents from one place: a FILE, or the body of a %%oh_store cell"
            )
        if cell is not None:
            self.oh.store.write(path, cell)
        else:
            self.oh.store.write(path, Path(str(file)).expanduser().read_bytes())
        return self._table([path])

    def _get(self, path: str, file: str | None) -> Path:
        target = Path(file or Path(path).name).expanduser().absolute()
        target.write_bytes(self.oh.store.read_bytes(path))
        return target
