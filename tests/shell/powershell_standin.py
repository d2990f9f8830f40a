"""A program that stands for PowerShell, which cannot be had everywhere.

It speaks PowerShell's side of the protocol: prompts, the echo of what is typed, the installed
functions, markers and reports. Commands are Python instead of PowerShell. Nothing that is tested
with it says anything about PowerShell itself.
"""

from __future__ import annotations

import ast
import base64
import os
import re
import signal
import sys
import time
import traceback

signal.signal(signal.SIGINT, signal.default_int_handler)


def write(text: str) -> None:
    os.write(1, text.encode())


def read_line() -> str:
    """Read a line and nothing beyond it: the rest may be for a program."""
    data = b""
    while not data.endswith(b"\n"):
        try:
            byte = os.read(0, 1)
        except KeyboardInterrupt:
            continue
        if not byte:
            sys.exit(0)
        data += byte
    write(data.decode())
    return data.decode()


def decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def split(text: str) -> list[str]:
    """Split at statements that begin on a line of their own."""
    offsets = [0]
    lines = text.splitlines(keepends=True)
    last = 0
    for statement in ast.parse(text).body:
        if last and statement.lineno > last:
            offsets.append(sum(map(len, lines[: statement.lineno - 1])))
        last = statement.end_lineno or 0
    return [
        text[start:end].rstrip()
        for start, end in zip(offsets, [*offsets[1:], len(text)], strict=True)
    ]


class Shell:
    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.token = ""
        self.command_id = "0"
        self.slowly = "SLOWLY" in os.environ

    def marker(self, kind: str, payload: str = "") -> None:
        data = f"\x1b]{self.token};{kind};{self.command_id};{payload}\x1b\\".encode()
        pieces = [bytes([byte]) for byte in data] if self.slowly else [data]
        for piece in pieces:
            os.write(1, piece)
            time.sleep(0)

    def prompt(self, code: int, ended: bool, refused: list[str]) -> None:
        values = [str(code), str(ended), "-1", os.environ.get("PATH", ""), os.getcwd(), *refused]
        self.marker("e", ",".join(map(encoded, values)))
        self.command_id = "-"
        write(" ")

    def run(self, text: str) -> tuple[int, bool, list[str]]:
        try:
            pieces = split(text)
            if len(pieces) > 1:
                return 0, False, pieces
            self.names["code"] = 0
            exec(text, self.names)
        except KeyboardInterrupt:
            return 1, False, []
        except Exception:
            write(traceback.format_exc(limit=0))
            return 1, False, []
        finally:
            sys.stdout.flush()
        return int(str(self.names["code"])), True, []

    def loop(self) -> None:
        write("PS /> ")
        while True:
            line = read_line()
            if install := re.fullmatch(r"\. \(\[ScriptBlock\]::Create\(.*'(.*)'\)+\n", line):
                match = re.search(r"oh_[0-9a-f]{16}(?=_begin)", decoded(install[1]))
                assert match, "the script names its functions by the token"
                self.token = match[0]
                if not self.ready():
                    continue
                self.prompt(0, True, [])
                continue
            match = re.fullmatch(r"\. \(" + self.token + r"_begin (\d+) '(.*)' '(.*)'\)\n", line)
            if not match:
                write(f"not understood: {line}")
                continue
            self.command_id = match[1]
            for variable in filter(None, decoded(match[3]).split("\0")):
                name, _, value = variable.partition("=")
                os.environ[name] = value
            self.marker("b")
            self.prompt(*self.run(decoded(match[2])))

    def ready(self) -> bool:
        """A profile may keep a shell from coming up."""
        return "-NoProfile" in sys.argv or "BAD_PROFILE" not in os.environ


Shell().loop()
