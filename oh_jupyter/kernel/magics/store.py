"""``%oh_store``: the file store of events and artefacts, and any other one."""

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
    Command,
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
    "use": Command(
        "[URL]",
        "Look into another store. It is a URL or a folder; without one, the runtime's own again.",
        "%oh_store use s3://bucket/prefix\n%oh_store use",
    ),
    "ls": Command("[PATH]", "List a folder.", "%oh_store ls sessions"),
    "tree": Command("[PATH]", "Show all that is in a folder.", "%oh_store tree sessions"),
    "cat": Command("PATH", "Show what is in a file.", "%oh_store cat notes/first.txt"),
    "info": Command("[PATH]", "Show size and time of a file.", "%oh_store info notes/first.txt"),
    "put": Command(
        "PATH [FILE]",
        "Store a file or folder that is on disk. With %%oh_store the body of the cell is stored.",
        "%oh_store put results ./out\n\n%%oh_store put notes/first.txt\nA line.",
    ),
    "get": Command(
        "PATH [FILE]",
        "Copy a file or folder to the disk.",
        "%oh_store get results ./out",
    ),
    "rm": Command("PATH ...", "Delete files and folders.", "%oh_store rm notes results"),
    "cp": Command(
        "FROM TO",
        "Copy from anywhere to anywhere. A path is one in the store; ./, ../ and ~ begin one on "
        "disk, and a URL names another store.",
        "%oh_store cp ./out s3://bucket/out",
    ),
    "sync": Command(
        "FROM TO",
        "Copy what is new or changed, from anywhere to anywhere. Places are written as for cp.",
        "%oh_store sync ./out results --delete",
        ("--checksum", "--delete"),
    ),
    "webhooks": Command(
        "[WHAT] [ID ...]",
        "List what the receiver does not have. `replay` and `discard` do so with dead letters, "
        "all or those named.",
        "%oh_store webhooks\n%oh_store webhooks replay 12",
        ("--force",),
    ),
    "flush": Command("", "Wait until all is sent.", "%oh_store flush --timeout 30", ("--timeout",)),
}
_ON_DISK = ("./", "../", "~")


@magics_class
class StoreMagics(OhMagics):
    """Look into the store, and keep things there."""

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
        """The store that is in use: the runtime's own, until another one is chosen."""
        return self.oh.store if self._used is None else self._used

    @no_var_expand
    @output_can_be_silenced
    @magic_options(_COMMANDS)
    @argument("--delete", action="store_true", help="sync: delete what the source does not have")
    @argument("--checksum", action="store_true", help="sync: compare contents, not times")
    @argument("--force", action="store_true", help="replay: also what is superseded")
    @argument("--timeout", type=seconds, metavar="S", help="flush: seconds to wait at most")
    @argument("command", choices=_COMMANDS, metavar="COMMAND", help="what to do")
    @argument("args", nargs="*", metavar="PATH", help="what to do it with; see above")
    @line_cell_magic
    def oh_store(self, line: str, cell: str | None = None) -> Any:
        """Use a file store.

        The value is what was found.
        """
        options = parse_line(self.oh_store, self.expand(line))
        args = [unquoted(arg) for arg in options.args]
        try:
            return self._done(options, args, cell)
        except (
            FileNotFoundError,
            IsADirectoryError,
            NotADirectoryError,
            FileExistsError,
        ) as error:
            raise UsageError(_sentence(error)) from error

    def _done(self, options: Namespace, args: list[str], cell: str | None) -> Any:
        command = options.command
        if cell is not None and command != "put":
            raise UsageError(f"{command} takes no text: write %oh_store with one %")
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
        """Ask the person, who may have meant something else by ``/``."""
        log = "" if self._used is not None else ", the log of this session among it"
        try:
            return bool(
                ask_yes_no(f"Delete all that is in {self.store!r}{log}? [y/n]", default="n")
            )
        except (NotImplementedError, EOFError):  # nobody is there to be asked
            return False

    def _hook(self) -> WebHookFileStore:
        if isinstance(self.store, storage.WebHookFileStore):
            return self.store
        raise UsageError(
            "this store reports to no webhook; set file_store_web_hook_url to have one"
        )

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
        done = self._carry("put", storage.copy, *_read_from(args[1]), self.store, path)
        return entry_table(self.store.info(name) for name in done.copied)

    def _get(self, args: list[str]) -> Path | Table:
        path = args[0].rstrip("/")
        name = path.rpartition("/")[2]
        target = os.path.expanduser(args[1] if len(args) > 1 else name)
        one = self.store.info(path)["type"] == "file"
        if one and os.path.isdir(target):
            target = os.path.join(target, name)
        done = self._carry("get", storage.copy, self.store, path, *_write_to(target))
        return Path(target).absolute() if one else transfer_table(done)

    def _between(self, options: Namespace, args: list[str]) -> Table:
        if len(args) != 2:
            raise UsageError(f"{options.command} needs two places: FROM and TO")
        places = (*self._place(args[0], _read_from), *self._place(args[1], _write_to))
        if options.command == "cp":
            return transfer_table(self._carry("cp", storage.copy, *places))
        how = {"delete": options.delete, "checksum": options.checksum}
        return transfer_table(self._carry("sync", storage.sync, *places, **how))

    def _place(
        self, text: str, on_disk: Callable[[str], tuple[FileStore, str]]
    ) -> tuple[FileStore, str]:
        """Find what a place stands for: a store and a path in it."""
        if text.startswith(_ON_DISK) or text in (".", ".."):
            return on_disk(text)
        if "://" not in text:
            return self.store, text
        parent, _, name = text.rstrip("/").rpartition("/")
        if parent.endswith(":/") or not name:
            return get_file_store(text), ""
        # A file needs a store around it; a directory may be one itself.
        return get_file_store(parent), name + "/" * text.endswith("/")

    def _carry(self, title: str, work: Any, *places: Any, **options: Any) -> Transfer:
        with progress_bar(self.shell, title) as progress:
            done: Transfer = work(*places, progress=progress, **options)
        return done

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
    """The store of a URL or name, or in a folder that is there."""
    folder = os.path.expanduser(name)
    try:
        store = get_file_store(name)
    except StoreConfigError as error:
        if "://" in name:
            raise
        if not os.path.isdir(folder):
            raise UsageError(f"there is no folder {name}, and as a store: {error}") from None
        store = storage.LocalFileStore(folder)
    store.exists("no/such/file")  # so that a wrong bucket or password is known at once
    return store


def _read_from(text: str) -> tuple[FileStore, str]:
    """Find a file or folder on disk that is there; a folder is the root of a store."""
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


def _sentence(problem: OSError) -> str:
    return f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem)


MAX_SHOWN_CHARS = 30_000
MAX_SHOWN_FILES = 1000
MAX_SHOWN_TRANSFERS = 20


def _size(size_bytes: int | str) -> str:
    """A size with its unit; a directory has none."""
    return size_text(size_bytes) if isinstance(size_bytes, int) else size_bytes


_SIZES = {"size": _size}


class StoredText(str):
    """The contents of a file, shown as they are; of a long one the beginning."""

    __slots__ = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        left_out = len(self) - MAX_SHOWN_CHARS
        note = f"\n… {left_out:,} more characters, all of them in the value"
        printer.text(self[:MAX_SHOWN_CHARS] + (note if left_out > 0 else ""))


class Tree:
    """A directory and everything below it, drawn as a tree; ``paths`` are its files."""

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
        """The drawing."""
        more = (
            [f"… and more than {MAX_SHOWN_FILES} files"]
            if len(self.paths) >= MAX_SHOWN_FILES
            else []
        )
        return "\n".join([*self._lines, *more])


def entry_table(entries: Iterable[FileInfo], modified: bool = False, noun: str = "files") -> Table:
    """Paths and sizes of entries, with ``modified`` also times; directories have a slash."""
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
    """What a transfer did; shown of many are the first, the last and how many there are."""
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
    """The changes that a webhook's receiver does not have."""
    rows = [
        (d.id, d.method, d.path, d.size, _state(d), d.attempts, d.reason, _when(d.due))
        for d in deliveries
    ]
    columns = ("id", "method", "path", "size", "state", "attempts", "reason", "due")
    return Table(columns, tuple(rows), _SIZES, summary=f"{len(rows):,} changes")


def report_table(report: DeliveryReport) -> Table:
    """What became of changes: counts, and each change that was given up."""
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
