"""``%oh_store``: the file store of events and artefacts, or another store."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import line_cell_magic, magics_class, no_var_expand, output_can_be_silenced
from IPython.core.magic_arguments import argument
from IPython.utils.io import ask_yes_no

from oh_jupyter import storage
from oh_jupyter.errors import StoreConfigError
from oh_jupyter.kernel.api import Oh
from oh_jupyter.kernel.display.table import Table, size_text
from oh_jupyter.kernel.magics.base import OhMagics, progress_bar
from oh_jupyter.kernel.magics.completion import complete_path, one_of
from oh_jupyter.kernel.magics.options import (
    MagicCommand,
    magic_options,
    parse_line,
    seconds,
    unquoted,
)
from oh_jupyter.storage import FileStore, get_file_store
from oh_jupyter.storage.paths import path_key

if TYPE_CHECKING:
    from oh_jupyter.storage import (
        Delivery,
        DeliveryReport,
        FileInfo,
        FileStore,
        Transfer,
        WebHookFileStore,
    )

_COMMANDS = {
    "use": MagicCommand(
        "[URL]",
        "Select another store by a URL or folder; without one, the runtime's own.",
        "%oh_store use s3://bucket/prefix\n%oh_store use",
    ),
    "ls": MagicCommand("[PATH]", "List a folder.", "%oh_store ls sessions"),
    "tree": MagicCommand("[PATH]", "Show everything in a folder.", "%oh_store tree sessions"),
    "cat": MagicCommand("PATH", "Show the contents of a file.", "%oh_store cat notes/first.txt"),
    "info": MagicCommand(
        "[PATH]", "Show size and time of a file.", "%oh_store info notes/first.txt"
    ),
    "put": MagicCommand(
        "PATH [FILE]",
        "Store a file or folder from the disk, or with %%oh_store the body of the cell.",
        "%oh_store put results ./out\n\n%%oh_store put notes/first.txt\nA line.",
    ),
    "get": MagicCommand(
        "PATH [FILE]",
        "Copy a file or folder to the disk.",
        "%oh_store get results ./out",
    ),
    "rm": MagicCommand("PATH ...", "Delete files and folders.", "%oh_store rm notes results"),
    "cp": MagicCommand(
        "FROM TO",
        "Copy between stores and the disk. A path is in the store; ./, ../ and ~ start a path on "
        "disk, and a URL names another store.",
        "%oh_store cp ./out s3://bucket/out",
    ),
    "sync": MagicCommand(
        "FROM TO",
        "Copy new and changed files between stores and the disk, with paths like cp.",
        "%oh_store sync ./out results --delete",
        ("--checksum", "--delete"),
    ),
    "webhooks": MagicCommand(
        "[WHAT] [ID ...]",
        "List undelivered changes. `replay` and `discard` process dead letters, all or the "
        "named ones.",
        "%oh_store webhooks\n%oh_store webhooks replay 12",
        ("--force",),
    ),
    "flush": MagicCommand(
        "", "Wait until all is sent.", "%oh_store flush --timeout 30", ("--timeout",)
    ),
}
_ON_DISK = ("./", "../", "~")


@magics_class
class StoreMagics(OhMagics):
    """Inspect the store, and save files in it."""

    def __init__(self, shell: InteractiveShell, oh: Oh) -> None:
        super().__init__(shell, oh)
        self._used: FileStore | None = None
        self.complete(
            "oh_store",
            {
                **dict.fromkeys(("PATH", "FROM", "TO"), self._complete),
                **dict.fromkeys(("FILE", "URL"), complete_path),
                "WHAT": one_of(("discard", "replay")),
            },
        )

    @property
    def store(self) -> FileStore:
        """The selected store; by default the runtime's own."""
        return self.oh.store if self._used is None else self._used

    @no_var_expand
    @output_can_be_silenced
    @magic_options(_COMMANDS)
    @argument("--delete", action="store_true", help="sync: delete files that the source lacks")
    @argument("--checksum", action="store_true", help="sync: compare contents, not times")
    @argument("--force", action="store_true", help="replay: also superseded changes")
    @argument("--timeout", type=seconds, metavar="S", help="flush: maximum wait in seconds")
    @argument("command", choices=_COMMANDS, metavar="COMMAND", help="what to do")
    @argument("args", nargs="*", metavar="PATH", help="its arguments; see above")
    @line_cell_magic
    def oh_store(self, line: str, cell: str | None = None) -> Any:
        """Use a file store.

        The value is the result.
        """
        options = parse_line(self.oh_store, self.expand(line))
        args = [unquoted(arg) for arg in options.args]
        try:
            return self._run_command(options, args, cell)
        except (
            FileNotFoundError,
            IsADirectoryError,
            NotADirectoryError,
            FileExistsError,
        ) as error:
            raise UsageError(_sentence(error)) from error

    def _run_command(self, options: Namespace, args: list[str], cell: str | None) -> Any:
        command = options.command
        if cell is not None and command != "put":
            raise UsageError(f"{command} takes no text; use %oh_store with one %")
        if command == "use":
            return self._use(args)
        if command == "webhooks":
            return self._webhooks(args, options.force)
        if command == "flush":
            return report_table(self._hook().flush(options.timeout))
        if command in ("cp", "sync"):
            return self._between(options, args)
        if command == "put":
            return self._put(args, cell)
        path = args[0] if args else ""
        if command == "ls":
            return entry_table(self.store.entries(path), noun="entries")
        if command == "tree":
            return Tree(self.store, path)
        if command == "info":
            return entry_table([self.store.info(path)], modified=True)
        if not path:
            raise UsageError(f"{command} needs a path in the store")
        if command == "get":
            return self._get(args)
        if command == "rm":
            return self._remove(args)
        return StoredText(self.store.read(path))

    def _use(self, args: list[str]) -> FileStore:
        self._used = _other_store(args[0]) if args else None
        return self.store

    def _remove(self, paths: list[str]) -> None:
        missing = [path for path in paths if path_key(path) and not self.store.exists(path)]
        if missing:
            raise UsageError(f"the store has no {', '.join(missing)}; nothing was deleted")
        if not all(map(path_key, paths)) and not self._may_empty_store():
            raise UsageError("nothing was deleted; to delete something, name it")
        self.store.delete_many(paths)

    def _may_empty_store(self) -> bool:
        """Ask the person, who may not have meant the whole store by ``/``."""
        log = "" if self._used is not None else ", including the log of this session"
        try:
            return bool(ask_yes_no(f"Delete everything in {self.store!r}{log}? [y/n]", default="n"))
        except (NotImplementedError, EOFError):  # no input is possible
            return False

    def _hook(self) -> WebHookFileStore:
        if isinstance(self.store, storage.WebHookFileStore):
            return self.store
        raise UsageError("this store has no webhook; set file_store_web_hook_url to add one")

    def _webhooks(self, args: list[str], force: bool) -> Table:
        hook = self._hook()
        what, *ids = args or ["list"]
        if what == "replay":
            hook.replay(*ids, force=force)
        elif what == "discard":
            hook.discard(*ids)
        elif what != "list":
            raise UsageError(f"webhooks takes replay or discard, not {what!r}")
        return delivery_table(hook.deliveries())

    def _put(self, args: list[str], cell: str | None) -> Table:
        if not args:
            raise UsageError("put needs a path in the store")
        path = args[0]
        if len(args) == 1 and cell is None:
            name, file = (os.path.basename(path), path) if os.path.isfile(path) else (path, "FILE")
            raise UsageError(
                f"say what is put where: %oh_store put {name} {file}, or %%oh_store put {name} "
                "with the text in the cell"
            )
        if len(args) > 1 and cell is not None:
            raise UsageError("put takes its contents from a FILE or from the cell, not from both")
        if cell is not None:
            self.store.write(path, cell)
            return entry_table([self.store.info(path)])
        transfer = self._transfer("put", storage.copy, *_read_from(args[1]), self.store, path)
        return entry_table(self.store.info(name) for name in transfer.copied)

    def _get(self, args: list[str]) -> Path | Table:
        path = args[0].rstrip("/")
        name = path.rpartition("/")[2]
        target = os.path.expanduser(args[1] if len(args) > 1 else name)
        is_file = self.store.info(path)["type"] == "file"
        if is_file and os.path.isdir(target):
            target = os.path.join(target, name)
        transfer = self._transfer("get", storage.copy, self.store, path, *_write_to(target))
        return Path(target).absolute() if is_file else transfer_table(transfer)

    def _between(self, options: Namespace, args: list[str]) -> Table:
        if len(args) != 2:
            raise UsageError(f"{options.command} needs two paths: FROM and TO")
        places = (*self._locate(args[0], _read_from), *self._locate(args[1], _write_to))
        if options.command == "cp":
            return transfer_table(self._transfer("cp", storage.copy, *places))
        how = {"delete": options.delete, "checksum": options.checksum}
        return transfer_table(self._transfer("sync", storage.sync, *places, **how))

    def _locate(
        self, text: str, on_disk: Callable[[str], tuple[FileStore, str]]
    ) -> tuple[FileStore, str]:
        """Return the store and the path in it for an argument."""
        if text.startswith(_ON_DISK) or text in (".", ".."):
            return on_disk(text)
        if "://" not in text:
            return self.store, text
        parent, _, name = text.rstrip("/").rpartition("/")
        if parent.endswith(":/") or not name:
            return get_file_store(text), ""
        # A file needs a store around it; a directory may be one itself.
        return get_file_store(parent), name + "/" * text.endswith("/")

    def _transfer(self, title: str, work: Any, *places: Any, **options: Any) -> Transfer:
        with progress_bar(self.shell, title) as progress:
            transfer: Transfer = work(*places, progress=progress, **options)
        return transfer

    def _complete(self, beginning: str) -> list[str]:
        quote = beginning[:1] if beginning[:1] in ("'", '"') else ""
        text = beginning[len(quote) :]
        if text.startswith(_ON_DISK):
            return complete_path(beginning)
        folder = text.rpartition("/")[0]
        try:
            entries = self.store.list(folder)
        except (OSError, ValueError):
            return []
        slash = "/" if text.startswith("/") else ""
        return [
            f"{quote}{slash}{entry}" + ("" if entry.endswith("/") else quote)
            for entry in entries
            if f"{slash}{entry}".startswith(text) and (quote or " " not in entry)
        ]


def _other_store(name: str) -> FileStore:
    """Return the store of a URL or name, or of an existing folder."""
    folder = os.path.expanduser(name)
    try:
        store = get_file_store(name)
    except StoreConfigError as error:
        if "://" in name:
            raise
        if not os.path.isdir(folder):
            raise UsageError(f"there is no folder {name}, and as a store: {error}") from None
        store = storage.LocalFileStore(folder)
    store.exists("no/such/file")  # fails early for a wrong bucket or password
    return store


def _read_from(text: str) -> tuple[FileStore, str]:
    """Return the store and path of an existing file or folder; a folder is the root of a store."""
    path = os.path.realpath(os.path.expanduser(text))
    if not os.path.exists(path):
        raise UsageError(f"there is no file {text}")
    return _write_to(path)


def _write_to(text: str) -> tuple[FileStore, str]:
    path = os.path.realpath(os.path.expanduser(text))
    if os.path.isdir(path):
        return storage.LocalFileStore(path), ""
    folder, name = os.path.split(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{text} cannot be written: the directory {folder} cannot be made: {error.strerror}"
        ) from None
    return storage.LocalFileStore(folder), name


def _sentence(error: OSError) -> str:
    return f"{error.strerror}: {error.filename}" if error.filename else str(error)


MAX_SHOWN_CHARS = 30_000
MAX_SHOWN_FILES = 1000
MAX_SHOWN_TRANSFERS = 20


def _size(size_bytes: int | str) -> str:
    """Return a size with its unit; a directory has none."""
    return size_text(size_bytes) if isinstance(size_bytes, int) else size_bytes


_SIZES = {"size": _size}


class StoredText(str):
    """The contents of a file, shown verbatim up to a limit."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        hidden = len(self) - MAX_SHOWN_CHARS
        note = f"\n… {hidden:,} more characters, all of them in the value"
        printer.text(self[:MAX_SHOWN_CHARS] + (note if hidden > 0 else ""))


class Tree:
    """A directory with everything below it, drawn as a tree; ``paths`` are its files."""

    def __init__(self, store: FileStore, path: str) -> None:
        self.paths: list[str] = []
        self._lines = [path.strip("/") or "."]
        self._lines += self._below(store, path, "")

    def _below(self, store: FileStore, path: str, indent: str) -> Iterator[str]:
        entries = store.list(path)
        for entry in entries:
            if len(self.paths) >= MAX_SHOWN_FILES:
                return
            last = entry == entries[-1]
            name = entry.rstrip("/").rpartition("/")[2]
            yield f"{indent}{'└── ' if last else '├── '}{name}{'/' * entry.endswith('/')}"
            if entry.endswith("/"):
                yield from self._below(store, entry, indent + ("    " if last else "│   "))
            else:
                self.paths.append(entry)

    def __repr__(self) -> str:
        """Return the drawing."""
        more = (
            [f"… and more than {MAX_SHOWN_FILES} files"]
            if len(self.paths) >= MAX_SHOWN_FILES
            else []
        )
        return "\n".join([*self._lines, *more])


def entry_table(entries: Iterable[FileInfo], modified: bool = False, noun: str = "files") -> Table:
    """Return paths and sizes of entries, with ``modified`` also times; directories have a slash."""
    rows = [
        (
            entry["path"] + "/" * (entry["type"] == "directory"),
            "" if entry["size"] is None else entry["size"],
            *([_when(entry["modified"])] if modified else []),
        )
        for entry in entries
    ]
    columns = ("path", "size", *(["modified"] if modified else []))
    return Table(columns, tuple(rows), _SIZES, summary=f"{len(rows):,} {noun}")


def transfer_table(done: Transfer) -> Table:
    """Return the results of a transfer; a long list shows its start, its end and counts."""
    rows = [("copied", path) for path in done.copied] + [("deleted", p) for p in done.deleted]
    if done.unchanged:
        rows.append(("unchanged", f"{done.unchanged:,} files"))
    counts = {
        "copied": len(done.copied),
        "deleted": len(done.deleted),
        "unchanged": done.unchanged,
    }
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return Table(("what", "path"), tuple(rows), summary=summary, max_shown_rows=MAX_SHOWN_TRANSFERS)


def delivery_table(deliveries: Iterable[Delivery]) -> Table:
    """Return the undelivered changes of a webhook."""
    rows = [
        (d.id, d.method, d.path, d.size, _state(d), d.attempts, d.reason, _when(d.due))
        for d in deliveries
    ]
    columns = ("id", "method", "path", "size", "state", "attempts", "reason", "due")
    return Table(columns, tuple(rows), _SIZES, summary=f"{len(rows):,} changes")


def report_table(report: DeliveryReport) -> Table:
    """Return the counts of deliveries, and each failed change."""
    rows: list[tuple[str, object]] = [
        ("delivered", report.delivered),
        ("pending", report.pending),
        ("failed", len(report.failed)),
    ]
    rows += [(f"{f.method} {f.path}", f.reason) for f in report.failed]
    return Table(("what", "value"), tuple(rows))


def _state(delivery: Delivery) -> str:
    return "superseded" if delivery.superseded else delivery.state


def _when(time: datetime | None) -> str:
    return "" if time is None else time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
