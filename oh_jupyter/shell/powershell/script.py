"""Shell integration for PowerShell, and the lines typed to it.

PowerShell reads from a pipe with ``-File -``, its ordinary read-eval-print loop, which calls the
function ``prompt`` after each command, even after ``throw`` or Ctrl-C. Our ``prompt`` writes the
closing marker with the report.

A command is typed as one ASCII line, ``. (OH_begin ID 'TEXT' 'VARIABLES')`` in base64. ``OH_begin``
parses the text with PowerShell's parser, writes the opening marker and returns a script block,
which is dot-sourced into the global scope. ``$?`` does not survive that, so the last line saves it;
it also reinstalls ``prompt`` if the command has replaced it. Functions and aliases take precedence
over cmdlets, so the script calls .NET, and cmdlets by their full names. ``Set-StrictMode`` affects
it.

A command does not see the ``$?`` of the previous one, and a line that a program did not read runs
as a command.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping

from oh_jupyter.shell.driver import Report

WIDTH = 200
"""Columns for tables: wider than a small window, narrow enough to keep columns together."""

# A boxed number is a new object after each program, which distinguishes it from a stale one.
SCRIPT = r"""
$global:OH = @{ id = '0'; ended = $true; code = 0; native = $null; refused = @(); lent = @{} }
try {
  if ([Environment]::OSVersion.Platform -eq 'Win32NT') {
    # Jupyter starts kernels with Ctrl-C ignored, and children inherit that.
    Microsoft.PowerShell.Utility\Add-Type -Namespace OH -Name Console -MemberDefinition (
      '[DllImport("kernel32.dll")]' +
      'public static extern bool SetConsoleCtrlHandler(IntPtr handler, bool add);')
    [void]([OH.Console]::SetConsoleCtrlHandler([IntPtr]::Zero, $false))
  }
} catch { }
$global:OutputEncoding = [Text.UTF8Encoding]::new($false)
try { [Console]::OutputEncoding = $global:OutputEncoding } catch { }
$global:ProgressPreference = 'SilentlyContinue'
try { $global:PSStyle.OutputRendering = 'PlainText' } catch { }
if ('FIRST') {
  $env:PATH = 'FIRST' + [IO.Path]::PathSeparator + $env:PATH
}
try {
  $OH_size = $Host.UI.RawUI.BufferSize
  $OH_size.Width = WIDTH
  $Host.UI.RawUI.BufferSize = $OH_size
} catch { }
$global:OH.out = [Console]::Out
$global:OH.escape = [string][char]27

function global:OH_value([string]$name) {
  return $ExecutionContext.SessionState.PSVariable.GetValue($name)
}

function global:OH_text([string]$encoded) {
  return [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($encoded))
}

function global:OH_mark([string]$kind, [string]$payload) {
  $escape = $global:OH.escape
  $global:OH.out.Write("$escape]OH;$kind;" + $global:OH.id + ";$payload$escape\")
  $global:OH.out.Flush()
}

function global:OH_split([string]$text, $ast) {
  $starts = [Collections.Generic.List[int]]::new()
  $line = 0
  foreach ($statement in $ast.EndBlock.Statements) {
    if ($starts.Count -eq 0) { $starts.Add(0) }
    elseif ($statement.Extent.StartLineNumber -gt $line) {
      $starts.Add($statement.Extent.StartOffset)
    }
    $line = $statement.Extent.EndLineNumber
  }
  $starts.Add($text.Length)
  $pieces = [Collections.Generic.List[string]]::new()
  for ($i = 0; $i -lt $starts.Count - 1; $i++) {
    $pieces.Add($text.Substring($starts[$i], $starts[$i + 1] - $starts[$i]).TrimEnd())
  }
  return $pieces.ToArray()
}

function global:OH_export([string]$variables, $replaced) {
  if (-not $variables) { return }
  foreach ($variable in (OH_text $variables).Split([char]0)) {
    $cut = $variable.IndexOf('=')
    $name = $variable.Substring(0, $cut)
    $value = $variable.Substring($cut + 1)
    if ($null -ne $replaced) {
      $replaced[$name] = @($value, [Environment]::GetEnvironmentVariable($name))
    }
    [Environment]::SetEnvironmentVariable($name, $value, 'Process')
  }
}

function global:OH_return {
  # A value that the command has changed stays.
  $lent = $global:OH.lent
  foreach ($name in $lent.Keys) {
    if ([Environment]::GetEnvironmentVariable($name) -ceq $lent[$name][0]) {
      [Environment]::SetEnvironmentVariable($name, $lent[$name][1], 'Process')
    }
  }
  $global:OH.lent = @{}
}

function global:OH_begin(
  [string]$id, [string]$encoded, [string]$variables, [string]$lent, [string]$script
) {
  $state = $global:OH
  $state.id = $id
  $state.ended = $false
  $state.refused = @()
  $state.native = OH_value 'LASTEXITCODE'
  OH_export $variables $null
  $state.lent = @{}
  OH_export $lent $state.lent
  $text = OH_text $encoded
  $tokens = $null
  $problems = $null
  $parser = [Management.Automation.Language.Parser]
  $ast = $parser::ParseInput($text, [ref]$tokens, [ref]$problems)
  OH_mark 'b' ''
  if ($problems.Count -gt 0) { throw [Management.Automation.ParseException]::new($problems) }
  if ($null -eq $ast.BeginBlock -and $null -eq $ast.ProcessBlock -and $ast.EndBlock.Unnamed) {
    $pieces = @(OH_split $text $ast)
    if ($pieces.Count -gt 1 -and -not $script) {
      $state.refused = $pieces
      return [ScriptBlock]::Create('')
    }
    $noted = "$text`nOH_end `$?"
    $more = $parser::ParseInput($noted, [ref]$tokens, [ref]$problems)
    $count = $ast.EndBlock.Statements.Count + 1
    if ($problems.Count -eq 0 -and $more.EndBlock.Statements.Count -eq $count) { $text = $noted }
  }
  return [ScriptBlock]::Create($text)
}

function global:OH_code([bool]$succeeded) {
  if ($succeeded) { return 0 }
  $native = OH_value 'LASTEXITCODE'
  $same = [object]::ReferenceEquals($native, $global:OH.native)
  if (-not $same -and $native -is [int] -and $native -ne 0) { return $native }
  return 1
}

function global:OH_end([bool]$succeeded) {
  $global:OH.ended = $true
  $global:OH.code = OH_code $succeeded
  OH_install
}

function global:OH_job {
  # PowerShell does not expose the process of a job; -1 if it is unknown.
  try {
    $last = $null
    foreach ($job in (Microsoft.PowerShell.Core\Get-Job)) { $last = $job }
    if ($null -eq $last) { return -1 }
    $process = $last.ChildJobs[0].Runspace.ConnectionInfo.Process.Process
    if ($process.Id -is [int]) { return $process.Id }
  } catch { }
  return -1
}

function global:OH_prompt([bool]$succeeded) {
  $state = $global:OH
  # A nested prompt belongs to a program that asks, such as the debugger.
  $nested = (OH_value 'NestedPromptLevel') -gt 0 -or $null -ne (OH_value 'PSDebugContext')
  if ($nested) { return 'PS>> ' }
  $errors = OH_value 'Error'
  $known = if ($null -eq $errors) { 0 } else { $errors.Count }
  $code = if ($state.ended) { $state.code } else { OH_code $succeeded }
  OH_return
  $values = [Collections.Generic.List[string]]::new()
  $values.Add([string]$code)
  $values.Add([string]$state.ended)
  $values.Add([string](OH_job))
  $values.Add([string]$env:PATH)
  $values.Add($ExecutionContext.SessionState.Path.CurrentFileSystemLocation.ProviderPath)
  foreach ($piece in $state.refused) { $values.Add($piece) }
  $encoded = [Collections.Generic.List[string]]::new()
  foreach ($value in $values) {
    $encoded.Add([Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($value)))
  }
  while ($null -ne $errors -and $errors.Count -gt $known) { $errors.RemoveAt(0) }
  OH_mark 'e' ([string]::Join(',', $encoded))
  $state.id = '-'
  return ' '
}

function global:OH_install {
  try {
    function global:prompt { return OH_prompt $? }
  } catch { }
}
OH_install
$global:Error.Clear()
"""

REPORT_FIELDS = 5


def read_report(command_id: str, payload: str) -> tuple[Report, bool]:
    """Return the report of a closing marker, and whether the command ran to its last line."""
    values = [b64decode(value).decode("utf-8", "replace") for value in payload.split(",")]
    exit_code, ended, job, path, cwd = values[:REPORT_FIELDS]
    refused = tuple(values[REPORT_FIELDS:])
    report = Report(command_id, int(exit_code), int(job), path, cwd, refused=refused)
    return report, ended == "True"


def typed_script(token: str, path_directory: str | None = None) -> bytes:
    """Return the line to type to install the functions; command 0 reports its completion."""
    text = f"'{_encoded(script(token, path_directory))}'"
    decoded = f"[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String({text}))"
    return f". ([ScriptBlock]::Create({decoded}))\n".encode()


def script(token: str, path_directory: str | None = None) -> str:
    """Return the script to install."""
    text = re.sub(r"\bOH(?=\b|_)", token, SCRIPT).replace("WIDTH", str(WIDTH))
    return text.replace("'FIRST'", "'" + (path_directory or "").replace("'", "''") + "'")


def typed_command(
    token: str,
    command_id: str,
    text: str,
    exports: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
    *,
    script: bool = False,
) -> bytes:
    """Return the line to type to run a command, with ``variables`` only for it.

    Values are taken literally. A ``script`` may have several commands.
    """
    values = [text, _assignments(exports)]
    if variables or script:
        values.append(_assignments(variables or {}))
    if script:
        values.append("script")
    arguments = " ".join(f"'{_encoded(value)}'" for value in values)
    return f". ({token}_begin {command_id} {arguments})\n".encode()


def _assignments(variables: Mapping[str, str]) -> str:
    return "\0".join(f"{name}={value}" for name, value in variables.items())


def _encoded(text: str) -> str:
    """Encode a text in base64, independent of quotes and code pages."""
    return b64encode(text.encode("utf-8", "surrogatepass")).decode()
