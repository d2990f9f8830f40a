r"""What is installed into bash: functions that mark where output ends, and report.

Around every command two markers are written to the terminal, escape sequences with a random token;
its output is exactly what stands between them. Exit status and state go over a second terminal, the
*report line*, so nothing that a command prints can be taken for a report. Both are opened by path
for each use: programs inherit no descriptor of ours, and ``exec 2>file`` does not matter. After its
report bash waits on the report line until the input that the command did not read is dropped.

A command is typed as ``eval $'...'``: bash reads all of it before anything runs, and no control
character reaches the terminal driver. What is around it stands in groups with redirections, so
``set -x`` and traps stay silent, and calls are ``\builtin ...``, so aliases and functions do not
get in the way; a function named ``builtin``, or ``enable -n``, is taken back at the command's end.
A prompt that is read-only is reported, and dropped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace

from oh_jupyter.shell.driver import Report
from oh_jupyter.shell.environment import END_OF_VARIABLES

ENV_PROGRAM = "/usr/bin/env"
REPORT_FIELDS = 9
PIECE_BYTES = 200
"""Source bytes for each typed line: a terminal takes lines of at most 4095 bytes."""
WORD_BYTES = 16 * 1024
"""Source bytes for each word: bash needs time that grows with the square of a word's pieces."""

# Assigning to a read-only variable aborts a function, where ``printf -v`` only fails; and the
# reports come before OH_install, which assigns to PROMPT_COMMAND.
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
  # Until the input that the command left unread is dropped: it is for no other one.
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
\builtin readonly -f OH_expand OH_begin OH_join OH_reclaim OH_end OH_prompt OH_install
\builtin set +o history +H
\builtin unset HISTFILE
if [[ 'FIRST' && ${PATH-} != 'FIRST' && ${PATH-} != 'FIRST':* ]]; then
  \builtin printf -v PATH %s 'FIRST' "${PATH:+:$PATH}"
fi
OH_id=0
OH_end 0 ''
} >/dev/null 2>&1
"""

QUOTED = {byte: f"\\x{byte:02x}" for byte in range(256)}
QUOTED |= {ord(c): c for c in map(chr, range(0x20, 0x7F)) if c not in "'\\!"}
QUOTED |= {ord("\n"): "\\n", ord("\\"): "\\\\"}


# The text of a compound command has several lines.
STILL_RUNNING = re.compile(r"^\[\d+\][-+ ] +Running .*\n(?:(?!\[\d+\][-+ ] ).*\n)*", re.MULTILINE)


def read_reports(data: bytes) -> tuple[list[Report], bytes]:
    """Split what came over the report line into complete reports and the rest."""
    fields = data.split(b"\0")
    rest = fields.pop()
    reports = []
    while len(fields) >= REPORT_FIELDS:
        _, command_id, exit_code, pid, path, cwd, *prompts, jobs = (
            field.decode("utf-8", "surrogateescape") for field in fields[:REPORT_FIELDS]
        )
        del fields[:REPORT_FIELDS]
        # ``jobs -n`` names new jobs as well, which bash does not do before a prompt.
        news = STILL_RUNNING.sub("", jobs)
        report = Report(command_id, int(exit_code), int(pid or -1), path, cwd, news)
        reports.append(replace(report, prompts=tuple(filter(None, prompts))))
    return reports, b"\0".join([*fields, rest])


def typed_handshake(token: str, terminal: str) -> bytes:
    """What to type to a bash that has just started: it answers with a marker of kind ``r``.

    ``bash --noediting`` crashes when somebody turns the editor on (seen with 5.2), hence this line.
    """
    answer = f"\\builtin printf '\\033]{token};r\\033\\\\' >'{terminal}'"
    return f"\\builtin set +o emacs +o vi; {answer}\n".encode()


def typed_script(
    token: str, terminal: str, report_line: str, path_directory: str | None = None
) -> bytes:
    """What to type to install the functions; the report of command 0 comes when it is done."""
    script = re.sub(r"\bOH(?=\b|_)", token, SCRIPT)
    script = script.replace("'MAIN'", f"'{terminal}'").replace("'LINE'", f"'{report_line}'")
    script = script.replace("'FIRST'", shlex.quote(path_directory or ""))
    return _typed_eval(script)


def typed_prompt(token: str) -> bytes:
    """What to type when bash is at its prompt, but did not report."""
    return f'{{ {token}_prompt "$?" "$_"; }} >/dev/null 2>&1\n'.encode()


def typed_command(
    token: str, command_id: str, text: str, *, complete: bool, setup: str = ""
) -> bytes:
    """What to type to run a command, after the lines of ``setup``, which are not seen."""
    # Only in a text that certainly parses can the closing call stand too; otherwise an open quote
    # would swallow it. After the eval, an ERR trap runs once too often, and $_ is lost.
    call = f'{token}_begin {command_id} "${token}_argument"'
    begin = f'{{\n{setup}{call} && \\builtin : "${token}_argument"; }} >/dev/null 2>&1\n'
    end = f'{{ {token}_end "$?" "$_"; }} >/dev/null 2>&1'
    if complete:
        return _typed_eval(begin + text + "\n" + end, token)
    return _typed_eval(begin + text, token, f"; {end}")


def setup_lines(token: str, exports: Mapping[str, str], status: int | None) -> str:
    """Lines for the ``setup`` of a command: variables, and the exit status that it finds."""
    lines = [f"\\builtin export {name}={shlex.quote(v)}\n" for name, v in exports.items()]
    if status is not None:
        lines.append(f"{token}_status={status}\n")
    return "".join(lines)


def variables_lines(file: str) -> str:
    """Lines for the ``setup`` of a command that write the exported variables to a file.

    The end is written only if all of them are there: the disk may be full.
    """
    quoted = shlex.quote(file)
    return f"{ENV_PROGRAM} -0 >{quoted} && \\builtin printf '{END_OF_VARIABLES}\\0' >>{quoted}\n"


def return_lines(directory: str, removed: Iterable[str]) -> str:
    """Lines for the ``setup`` of a command that go to a directory and remove variables."""
    names = "".join(f"\\builtin unset -v {name}\n" for name in removed)
    return f"{names}\\builtin cd -- {shlex.quote(directory)}\n"


def _typed_eval(text: str, token: str | None = None, after: str = "") -> bytes:
    """Quote a text for a terminal and bash; a long one is joined by the functions of the token."""
    source = text.encode("utf-8", "surrogateescape")
    if token is None or len(source) <= WORD_BYTES:
        return f"\\builtin eval {_quoted(source)}{after}\n".encode()
    starts = range(0, len(source), WORD_BYTES)
    words = " \\\n".join(_quoted(source[start : start + WORD_BYTES]) for start in starts)
    join = f"{{ {token}_join {words}; }} >/dev/null 2>&1"
    return f'{join}; \\builtin eval "${token}_text"{after}\n'.encode()


def _quoted(source: bytes) -> str:
    """One word of bash in several lines, none of them too long for a terminal."""
    pieces = (source[start : start + PIECE_BYTES] for start in range(0, len(source), PIECE_BYTES))
    return "\\\n".join("$'" + "".join(map(QUOTED.__getitem__, piece)) + "'" for piece in pieces)
