"""Cost of the editor, as ratios to bare Python in the same run.

Run it with ``python tests/benchmarks/bench_editor.py``. The baseline of an edit reads
the file, replaces the text, writes a temporary file, flushes it and renames it; the
editor also finds the encoding, looks for foreign changes and keeps the history. Both take
turns, so that whatever else the machine does hits them alike.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from oh_jupyter.editor import FileEditor
from oh_jupyter.editor.text import unified_diff

ROUNDS = 15
MANY = 1000


def seconds(call: Callable[[int], object], number: int) -> float:
    """Return the duration of a call."""
    start = time.perf_counter()
    call(number)
    return time.perf_counter() - start


def compare(
    name: str, editor: Callable[[int], object], bare: Callable[[int], object]
) -> tuple[float, float]:
    """Let both take turns, after one that warms up, and print the medians in seconds."""
    editor(0)
    bare(0)
    times = [(seconds(editor, n), seconds(bare, n)) for n in range(1, ROUNDS + 1)]
    ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
    report(name, ours, theirs)
    return ours, theirs


def report(name: str, ours: float, theirs: float) -> None:
    print(f"{name:36} {ours * 1000:9.2f} ms {theirs * 1000:9.2f} ms {ours / theirs:7.2f} x")


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


def bench_file(folder: Path, megabytes: int) -> None:
    path, other = folder / f"{megabytes}.txt", folder / f"{megabytes}-bare.txt"
    count = megabytes * 1024 * 1024 // 50
    text = "".join(f"{n:08} the quick brown fox jumps over the lazy\n" for n in range(count))
    path.write_text(text)
    other.write_text(text)
    editor = FileEditor(folder, history_dir=folder / "history")
    middle = count // 2

    def view(_: int) -> object:
        return editor(command="view", path=path, view_range=[middle + 1, middle + 100])

    def bare_view(_: int) -> str:
        lines = other.read_text(encoding="utf-8").split("\n")[middle : middle + 100]
        return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(lines, middle + 1))

    def str_replace(n: int) -> object:
        old = f"{middle + n:08} the"
        return editor(command="str_replace", path=path, old_str=old, new_str=f"[{n}]")

    def bare_replace(n: int) -> None:
        bare_edit(other, lambda text: text.replace(f"{middle + n:08} the", f"[{n}]"))

    def undo(_: int) -> object:
        return editor(command="undo_edit", path=path)

    def bare_undo(n: int) -> None:
        bare_edit(other, lambda text: text.replace(f"[{n}]", f"{middle + n:08} the"))

    def insert(n: int) -> object:
        return editor(command="insert", path=path, insert_line=middle, new_str=f"new {n}")

    compare(f"{megabytes} MB, view of 100 lines", view, bare_view)
    compare(f"{megabytes} MB, str_replace", str_replace, bare_replace)
    compare(f"{megabytes} MB, undo", undo, bare_undo)
    insert(0)
    compare(
        f"{megabytes} MB, insert",
        insert,
        lambda _: bare_edit(other, lambda text: bare_insert(text, middle)),
    )


def many(folder: Path) -> tuple[list[float], list[float]]:
    """Make and undo many small edits; how long each took in seconds."""
    path = folder / "many.txt"
    path.write_text("".join(f"<{n}>\n" for n in range(MANY)))
    before = path.read_bytes()
    editor = FileEditor(folder, history_dir=folder / "history", history_limit=MANY)

    def edit(n: int) -> object:
        return editor(command="str_replace", path=path, old_str=f"<{n}>", new_str=f"[{n}]")

    edits = [seconds(edit, n) for n in range(MANY)]
    undos = [seconds(lambda _: editor(command="undo_edit", path=path), n) for n in range(MANY)]
    assert path.read_bytes() == before
    return edits, undos


def bench_many() -> None:
    with tempfile.TemporaryDirectory() as name:
        edits, undos = many(Path(name))
    for what, times in (("edits", edits), ("undos", undos)):
        print(f"{MANY} small {what}: {sum(times):.2f} s")
        first, last = statistics.median(times[100:300]), statistics.median(times[-200:])
        report(f"{what} {MANY - 200}-{MANY} against 100-300", last, first)
    with tempfile.TemporaryDirectory() as name:
        tracemalloc.start()
        many(Path(name))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    print(f"peak memory of both: {peak / 1e6:.1f} MB")


def bench_import() -> None:
    def start(code: str) -> Callable[[int], object]:
        return lambda _: subprocess.run([sys.executable, "-c", code], check=True)

    pairs = [
        (seconds(start("import oh_jupyter.editor"), n), seconds(start(""), n))
        for n in range(ROUNDS)
    ]
    loaded, bare = (min(column) for column in zip(*pairs, strict=True))
    print(f"import oh_jupyter.editor: {(loaded - bare) * 1000:.0f} ms on top of Python's start")


def diff_cases() -> dict[str, tuple[list[str], list[str]]]:
    """Measure the worst cases of a line diff: repeated lines, and changes everywhere."""
    count = 180_000  # lines, 9 MB
    draw = random.Random(1)
    sentence = "the quick brown fox jumps over the lazy"
    small = [f'"key": {n % 10},' if n % 3 else "{" for n in range(2250)]
    large = [f"{n:08} {sentence}" for n in range(count)]
    few = [f"{draw.randrange(7)} {sentence}" for _ in range(count)]
    letters = [str(n * n % 7) for n in range(16_000)]
    return {
        "one key of 2,250 lines": (small, [line.replace("key", "name") for line in small]),
        "all lines alike, 9 MB": ([sentence] * count, [sentence] * (count - 9)),
        "every second line, 9 MB": (
            large,
            [f"{'x' * (n % 2)}{line}" for n, line in enumerate(large)],
        ),
        "every third line deleted, 9 MB": (large, [line for n, line in enumerate(large) if n % 3]),
        "every line, 9 MB": (large, [line[::-1] for line in large]),
        "shuffled, 9 MB": (large, draw.sample(large, count)),
        "7 kinds of lines, 1% deleted, 9 MB": (few, [line for line in few if draw.random() < 0.99]),
        "7 kinds of lines, half changed, 9 MB": (
            few,
            [line if draw.random() < 0.5 else f"x{line}" for line in few],
        ),
        "20,000 random lines of 1,000 kinds": (
            [str(draw.randrange(1000)) for _ in range(20_000)],
            [str(draw.randrange(1000)) for _ in range(20_000)],
        ),
        "16,000 lines of 7 kinds": (letters, [str(n * n * n % 11 % 7) for n in range(16_000)]),
    }


def children_seconds() -> float:
    """Processor time of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # os.times counts in hundredths
    return used.ru_utime + used.ru_stime


def bench_diffs(folder: Path) -> None:
    """Compare processor times, to which nothing else on the machine adds."""
    print(f"{'unified diff':36} {'editor':>12} {'GNU diff':>12} {'ratio':>9}")
    for name, (old, new) in diff_cases().items():
        before, after = folder / "before", folder / "after"
        before.write_text("\n".join(old) + "\n")
        after.write_text("\n".join(new) + "\n")
        ours, theirs = [], []
        for _ in range(3):
            start = time.process_time()
            unified_diff(before.read_text(), after.read_text(), "file", 3)
            ours.append(time.process_time() - start)
            start = children_seconds()
            command = ["diff", "-u", str(before), str(after)]
            subprocess.run(command, stdout=subprocess.PIPE, check=False)
            theirs.append(children_seconds() - start)
        report(name, min(ours), min(theirs))


def bench_views(folder: Path) -> None:
    """Compare views of a large directory and of lines of a large file with bare reads."""
    editor = FileEditor(folder)
    names = folder / "names"
    names.mkdir()
    for number in range(10_000):
        (names / f"file {number}").touch()
    compare(
        "view a directory of 10,000 files",
        lambda _: editor(command="view", path=names),
        lambda _: sorted(os.listdir(names)),
    )
    large = folder / "large.txt"
    with open(large, "w", encoding="utf-8") as file:
        file.writelines(f"{number:08} {'x' * 65}\n" for number in range(2_000_000))
    for first in (1, 1_500_000):
        command = ["sed", "-n", f"{first},{first + 1}p;{first + 1}q", str(large)]
        compare(
            f"lines {first:,} and {first + 1:,} of 150 MB",
            lambda _, first=first: editor(
                command="view", path=large, view_range=[first, first + 1]
            ),
            lambda _, command=command: subprocess.run(command, stdout=subprocess.PIPE, check=True),
        )


def main() -> None:
    """Print the table."""
    print(f"{'':36} {'editor':>12} {'bare':>12} {'ratio':>9}")
    for megabytes in (1, 9):
        with tempfile.TemporaryDirectory() as name:
            bench_file(Path(name), megabytes)
    with tempfile.TemporaryDirectory() as name:
        bench_views(Path(name))
    with tempfile.TemporaryDirectory() as name:
        bench_diffs(Path(name))
    bench_many()
    bench_import()


if __name__ == "__main__":
    main()
