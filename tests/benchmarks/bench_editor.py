"""What the editor costs, as ratios to bare Python in the same run.

Run it with ``python tests/benchmarks/bench_editor.py``. The baseline of an edit reads
the file, replaces the text, writes a temporary file, flushes it and renames it; the
editor also finds the encoding, looks for foreign changes and keeps the history.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from oh_jupyter.editor import FileEditor

ROUNDS = 9


def median(call: Callable[[int], object]) -> float:
    """Median time of a call in seconds, after one that warms up."""
    call(0)
    times = []
    for number in range(1, ROUNDS + 1):
        start = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def bare_edit(path: Path, change: Callable[[str], str]) -> None:
    text = change(path.read_text(encoding="utf-8"))
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def bare_insert(text: str, line: int) -> str:
    lines = text.split("\n")
    lines.insert(line, "inserted")
    return "\n".join(lines)


def compare(name: str, editor: float, bare: float) -> None:
    print(f"{name:36} {editor * 1000:9.2f} ms {bare * 1000:9.2f} ms {editor / bare:7.2f} x")


def bench_file(folder: Path, megabytes: int) -> None:
    path, other = folder / f"{megabytes}.txt", folder / f"{megabytes}-bare.txt"
    count = megabytes * 1024 * 1024 // 50
    text = "".join(f"{n:08} the quick brown fox jumps over the lazy\n" for n in range(count))
    path.write_text(text)
    other.write_text(text)
    editor = FileEditor(folder, history_dir=folder / "history")
    middle = count // 2

    def bare_view(_: int) -> str:
        lines = other.read_text(encoding="utf-8").split("\n")[middle : middle + 100]
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, middle + 1))

    compare(
        f"{megabytes} MB, view of 100 lines",
        median(lambda _: editor(command="view", path=path, view_range=[middle + 1, middle + 100])),
        median(bare_view),
    )
    compare(
        f"{megabytes} MB, str_replace",
        median(
            lambda n: editor(
                command="str_replace", path=path, old_str=f"{middle + n:08} the", new_str=f"[{n}]"
            )
        ),
        median(lambda n: bare_edit(other, lambda t: t.replace(f"{middle + n:08} the", f"[{n}]"))),
    )
    bare_write = median(lambda n: bare_edit(other, lambda t: t.replace(f"[{n}]", "x")))
    compare(
        f"{megabytes} MB, undo",
        median(lambda _: editor(command="undo_edit", path=path)),
        bare_write,
    )
    compare(
        f"{megabytes} MB, insert",
        median(
            lambda n: editor(command="insert", path=path, insert_line=middle, new_str=f"new {n}")
        ),
        median(lambda _: bare_edit(other, lambda t: bare_insert(t, middle))),
    )


def bench_many(folder: Path) -> None:
    path = folder / "many.txt"
    path.write_text("".join(f"<{n}>\n" for n in range(1000)))
    editor = FileEditor(folder, history_dir=folder / "history")
    tracemalloc.start()
    times = []
    for number in range(1000):
        start = time.perf_counter()
        editor(command="str_replace", path=path, old_str=f"<{number}>", new_str=f"[{number}]")
        times.append(time.perf_counter() - start)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    first, last = statistics.median(times[100:300]), statistics.median(times[-200:])
    print(f"1000 small edits: {sum(times):.2f} s, peak memory {peak / 1e6:.1f} MB")
    compare("edits 800-1000 against 100-300", last, first)


def bench_import() -> None:
    def start(code: str) -> Callable[[int], object]:
        return lambda _: subprocess.run([sys.executable, "-c", code], check=True)

    bare = median(start("pass"))
    loaded = median(start("import oh_jupyter.editor"))
    print(f"import oh_jupyter.editor: {(loaded - bare) * 1000:.0f} ms on top of Python's start")


def main() -> None:
    """Print the table."""
    print(f"{'':36} {'editor':>12} {'bare':>12} {'ratio':>9}")
    with tempfile.TemporaryDirectory() as name:
        for megabytes in (1, 9):
            bench_file(Path(name), megabytes)
        bench_many(Path(name))
    bench_import()


if __name__ == "__main__":
    main()
