r"""Shell integration for bash: functions that mark the output of a command and report its end.

The functions write two markers to the terminal around every command, escape sequences with a random
token; the command's output is exactly the text between them. Exit status and state go over a second
terminal, the *report line*, so no output can be mistaken for a report. Both are opened by path for
each use: programs inherit no descriptor of ours, and ``exec 2>file`` has no effect on them. After
its report, bash waits on the report line until unread input of the command is discarded.

A command is typed as ``eval $'...'``: bash reads all of it before anything runs, and no control
character reaches the terminal driver. The surrounding calls are in groups with redirections, which
silences ``set -x`` and traps. They use ``\builtin ...``, which bypasses aliases and functions; a
function named ``builtin``, or ``enable -n``, is reverted at the command's end. A read-only prompt
is reported, and removed from the output.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from oh_jupyter.shell.driver import Report
from oh_jupyter.shell.environment import END_OF_VARIABLES

ENV_PROGRAM = "/usr/bin/env"
REPORT_FIELDS = 8
PIECE_BYTES = 200
"""Source bytes per typed line; a terminal accepts lines of at most 4095 bytes."""
WORD_BYTES = 16 * 1024
"""Source bytes per word; bash's time is quadratic in the pieces of a word."""

# Assigning to a read-only variable aborts a function, whereas ``printf -v`` only fails. The report
# comes before OH_install, which assigns to PROMPT_COMMAND.
SCRIPT = r"""
{
if ((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4)); then
  OH_expand() { \builtin printf %s "${!1+${!1@P}}"; }
else
  OH_expand() { \builtin printf %s "${!1-}"; }
fi
OH_begin() {
  OH_text=
  \builtin printf -v PS1 %s "$OH_ps1"
  \builtin printf -v PS2 %s "$OH_ps2"
  OH_id=$1
  \builtin printf -v LINENO 0
  \builtin printf '\033]OH;b;%s\033\\' "$1" >'MAIN'
  \builtin return "$OH_status"
}
OH_join() {
  \builtin printf -v OH_text %s "$@"
}
OH_lend() {
  OH_state=
  if [[ ${!1+x} ]]; then
    OH_state=$(\builtin declare -p "$1")
    OH_state=${OH_state%%"$1"*}
  fi
  OH_before=${!1-}
  \builtin printf -v "$1" %s "$2" || \builtin return 0
  \builtin export "$1"
  OH_lent+=("$1" "$2" "$OH_state" "$OH_before")
}
OH_return() {
  # A value that the command has changed stays.
  if [[ ${!1-} == "$2" ]]; then
    if [[ $3 ]]; then \builtin printf -v "$1" %s "$4"; else \builtin unset -v "$1"; fi
    if [[ $3 && $3 != *x* ]]; then \builtin export -n "$1"; fi
  fi
}
OH_reclaim() {
  # In POSIX mode, ``unset`` is found before functions.
  OH_options=:$SHELLOPTS:$BASHOPTS:
  POSIXLY_CORRECT=y
  \unset -f builtin
  [[ $OH_options == *:posix:* ]] || \unset POSIXLY_CORRECT
  \enable builtin printf eval jobs read
  for OH_name in expand_aliases inherit_errexit interactive_comments shift_verbose sourcepath; do
    if [[ $OH_options == *:"$OH_name":* ]]; then OH_switch=-s; else OH_switch=-u; fi
    \builtin shopt "$OH_switch" "$OH_name"
  done
}
OH_end() {
  OH_status=$1 OH_argument=$2 OH_works=
  \builtin printf -v OH_works 1
  \builtin eval 'OH_works+=2'
  [[ $OH_works == 12 ]] || OH_reclaim
  OH_ps1=${PS1-} OH_ps2=${PS2-}
  while ((${#OH_lent[@]})); do
    OH_return "${OH_lent[@]:0:4}"
    OH_lent=("${OH_lent[@]:4}")
  done
  {
    \builtin printf '%s\0' OH "$OH_id" "$1" "${!-}" "${PATH-}" "${PWD-}"
    \builtin printf -v PS1 %s '' || OH_expand PS1
    \builtin printf '\0'
    \builtin printf -v PS2 %s '' || OH_expand PS2
    \builtin printf '\0'
    \builtin jobs -n
    \builtin printf '\0'
  } >'LINE'
  \builtin printf '\033]OH;e;%s\033\\' "$OH_id" >'MAIN'
  OH_last=$OH_id
  OH_id=-
  OH_install
  # Wait until unread input of the command is discarded.
  while IFS= \builtin read -r -t 5 OH_answer && [[ $OH_answer != "$OH_last" ]]; do
    \builtin :
  done <'LINE'
}
OH_prompt() {
  if [[ ${OH_id--} == - ]]; then
    if [[ ${PS1-} ]]; then OH_ps1=$PS1; \builtin printf -v PS1 %s ''; fi
    OH_install
  else
    OH_end "$1" "$2"
  fi
}
if ((BASH_VERSINFO[0] > 5 || BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1)); then
  OH_install() {
    if [[ ${PROMPT_COMMAND[@]: -1} != *OH_prompt* ]]; then
      PROMPT_COMMAND+=('{ OH_prompt "$?" "$_"; } >/dev/null 2>&1')
    fi
  }
else
  OH_install() {
    if [[ ${PROMPT_COMMAND-} != *OH_prompt* ]]; then
      OH_call='{ OH_prompt "$?" "$_"; } >/dev/null 2>&1'
      PROMPT_COMMAND=$OH_call${PROMPT_COMMAND:+"; $PROMPT_COMMAND"}
    fi
  }
fi
\builtin readonly -f OH_expand OH_begin OH_join OH_lend OH_return OH_reclaim OH_end OH_prompt
\builtin readonly -f OH_install
\builtin set +o history +H
\builtin unset HISTFILE
if [[ 'FIRST' && ${PATH-} != 'FIRST' && ${PATH-} != 'FIRST':* ]]; then
  \builtin printf -v PATH %s 'FIRST' "${PATH:+:$PATH}"
fi
OH_id=0
OH_lent=(LENT)
OH_end 0 ''
} >/dev/null 2>&1
"""

QUOTED = {byte: f"\\x{byte:02x}" for byte in range(256)}
QUOTED |= {ord(c): c for c in map(chr, range(0x20, 0x7F)) if c not in "'\\!"}
QUOTED |= {ord("\n"): "\\n", ord("\\"): "\\\\"}


# The text of a compound command has several lines.
STILL_RUNNING = re.compile(r"^\[\d+\][-+ ] +Running .*\n(?:(?!\[\d+\][-+ ] ).*\n)*", re.MULTILINE)


def read_reports(data: bytes, token: str) -> tuple[list[Report], bytes]:
    """Split data of the report line into complete reports and the rest.

    An interrupt may cut a report short, which bash then repeats.
    """
    start = f"{token}\0".encode()
    *earlier, last = data.split(start)
    reports = [report for piece in earlier if (report := _report(piece)) is not None]
    if (report := _report(last)) is None:
        return reports, start + last if earlier else last
    return [*reports, report], last.split(b"\0", REPORT_FIELDS)[REPORT_FIELDS]


def _report(piece: bytes) -> Report | None:
    """Return the report in a piece of data, or None if it is not complete."""
    *fields, _ = piece.decode("utf-8", "surrogateescape").split("\0")
    if len(fields) < REPORT_FIELDS:
        return None
    command_id, exit_code, pid, path, cwd, *prompts, jobs = fields[:REPORT_FIELDS]
    # ``jobs -n`` also lists new jobs, which bash does not do before a prompt.
    jobs = STILL_RUNNING.sub("", jobs)
    report = Report(command_id, int(exit_code), int(pid or -1), path, cwd, jobs)
    return replace(report, prompts=tuple(filter(None, prompts)))


def typed_handshake(token: str, terminal: str) -> bytes:
    """Return the first line to type to bash, which replies with a marker ``r`` and its process id.

    It turns the line editor off; ``bash --noediting`` would crash if it is turned on later (5.2).
    """
    reply = f"\\builtin printf '\\033]{token};r;%s\\033\\\\' \"$$\" >'{terminal}'"
    return f"\\builtin set +o emacs +o vi; {reply}\n".encode()


def typed_script(
    token: str,
    terminal: str,
    report_line: str,
    path_directory: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> bytes:
    """Return the line to type to install the functions; command 0 reports its completion.

    It removes ``variables``, which a bash started by ``exec`` has from that command.
    """
    script = re.sub(r"\bOH(?=\b|_)", token, SCRIPT)
    script = script.replace("'MAIN'", f"'{terminal}'").replace("'LINE'", f"'{report_line}'")
    script = script.replace("'FIRST'", shlex.quote(path_directory or ""))
    lent = " ".join(f"{name} {shlex.quote(v)} '' ''" for name, v in (variables or {}).items())
    script = script.replace("(LENT)", f"({lent})")
    return _typed_eval(script)


def typed_prompt(token: str) -> bytes:
    """Return the line to type to a bash that is at its prompt without a report."""
    return f'{{ {token}_prompt "$?" "$_"; }} >/dev/null 2>&1\n'.encode()


def typed_command(
    token: str,
    command_id: str,
    text: str,
    *,
    complete: bool,
    setup: str = "",
    store: Callable[[str], str | None] = lambda source: None,
) -> bytes:
    """Return the line to type to run a command after hidden ``setup`` lines.

    ``store`` writes a source to a file and returns its path for bash, or None if it has to be
    typed.
    """
    # Only a text that certainly parses can include the closing call; otherwise an open quote would
    # swallow it. After the eval, an ERR trap runs once too often, and $_ is lost.
    call = f'{token}_begin {command_id} "${token}_argument"'
    begin = f'{{\n{setup}{call} && \\builtin : "${token}_argument"; }} >/dev/null 2>&1\n'
    end = f'{{ {token}_end "$?" "$_"; }} >/dev/null 2>&1'
    source, after = (begin + text + "\n" + end, "") if complete else (begin + text, f"; {end}")
    path = store(source)
    if path is None:
        return _typed_eval(source, token, after)
    read = f"{{ {token}_text=$(<{shlex.quote(path)}); }} >/dev/null 2>&1"
    return f'{read}; \\builtin eval "${token}_text"{after}\n'.encode()


def setup_lines(
    token: str,
    exports: Mapping[str, str],
    status: int | None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Return ``setup`` lines that export variables and set the last exit status.

    ``variables`` have their previous values again when the command has ended.
    """
    lines = [f"\\builtin export {name}={shlex.quote(v)}\n" for name, v in exports.items()]
    lines += [f"{token}_lend {name} {shlex.quote(v)}\n" for name, v in (variables or {}).items()]
    if status is not None:
        lines.append(f"{token}_status={status}\n")
    return "".join(lines)


def variables_lines(file: str) -> str:
    """Return ``setup`` lines that write the exported variables to a file.

    The end marker is missing if the disk is full.
    """
    quoted = shlex.quote(file)
    return f"{ENV_PROGRAM} -0 >{quoted} && \\builtin printf '{END_OF_VARIABLES}\\0' >>{quoted}\n"


def restore_lines(directory: str, removed: Iterable[str]) -> str:
    """Return ``setup`` lines that change the directory and remove variables."""
    names = "".join(f"\\builtin unset -v {name}\n" for name in removed)
    return f"{names}\\builtin cd -- {shlex.quote(directory)}\n"


def _typed_eval(text: str, token: str | None = None, after: str = "") -> bytes:
    """Return an ``eval`` of a quoted text; a long text is joined by the installed functions."""
    source = text.encode("utf-8", "surrogateescape")
    if token is None or len(source) <= WORD_BYTES:
        return f"\\builtin eval {_quoted(source)}{after}\n".encode()
    starts = range(0, len(source), WORD_BYTES)
    words = " \\\n".join(_quoted(source[start : start + WORD_BYTES]) for start in starts)
    join = f"{{ {token}_join {words}; }} >/dev/null 2>&1"
    return f'{join}; \\builtin eval "${token}_text"{after}\n'.encode()


def _quoted(source: bytes) -> str:
    """Quote a word for bash over several lines, each short enough for a terminal."""
    pieces = (source[start : start + PIECE_BYTES] for start in range(0, len(source), PIECE_BYTES))
    return "\\\n".join("$'" + "".join(map(QUOTED.__getitem__, piece)) + "'" for piece in pieces)
