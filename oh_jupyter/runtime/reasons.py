"""Reasons why an agent's Action waits for a person: their codes, and one table of the sentences.

Approvals are compared and saved by code and parameters, so that a sentence can be reworded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ReasonCode = Literal[
    "asked_by_agent",
    "asked_by_named_agent",
    "becomes_other_user",
    "called_risky",
    "changes_confirmation",
    "changes_file",
    "changes_program",
    "deletes_from_store",
    "deletes_variables",
    "ends_kernel",
    "ends_runtime",
    "every_action",
    "forces_push",
    "gets_vscode_key",
    "kills_all",
    "loses_many_variables",
    "loses_variable",
    "loses_variables",
    "opens_files",
    "overwrites_device",
    "overwrites_disk",
    "overwrites_others",
    "reaches_host",
    "reads_credentials_after",
    "reads_file",
    "removes_tree",
    "removes_tree_outside",
    "removes_unnamed_tree",
    "runs_download",
    "sends_data_after",
    "starts_kernel",
    "starts_program",
    "stops_cell",
    "stops_machine",
    "uses_credentials",
    "uses_files",
    "uses_hidden",
    "uses_such_files",
    "writes_file",
    "writes_outside",
]
"""Codes of reasons. They are in saved approvals: a code that is renamed loses its approvals."""

SENTENCES: dict[ReasonCode, str] = {
    "asked_by_agent": "the agent asks you",
    "asked_by_named_agent": "{} asks you",
    "becomes_other_user": "it becomes another user",
    "called_risky": "the agent calls it risky",
    "changes_confirmation": "it changes which actions wait for a person",
    "changes_file": "it changes {}",
    "changes_program": "your programs run code from this file, which sandboxes cannot change",
    "deletes_from_store": "it deletes {} from the store",
    "deletes_variables": "it deletes the variables of the kernel",
    "ends_kernel": "it ends or resets the kernel, whose variables are lost",
    "ends_runtime": "it ends the runtime, with its shell and browser",
    "every_action": "every action of an agent waits",
    "forces_push": "it overwrites the history of a remote repository",
    "gets_vscode_key": "it gets the key to VS Code, whose terminal asks nobody",
    "kills_all": "it kills every process it can",
    "loses_many_variables": "it loses {} variables: {} and {} more",
    "loses_variable": "it loses 1 variable: {}",
    "loses_variables": "it loses {} variables: {}",
    "opens_files": "it opens files to everybody",
    "overwrites_device": "it overwrites a device",
    "overwrites_disk": "it formats or overwrites a disk",
    "overwrites_others": "it overwrites what others changed since",
    "reaches_host": "it reaches {}",
    "reads_credentials_after": "it reads credentials after the agent has read text from {}",
    "reads_file": "it reads {}",
    "removes_tree": "it removes a whole directory tree: {}",
    "removes_tree_outside": "it removes a whole directory tree outside of the workspace",
    "removes_unnamed_tree": "it removes a directory tree that the cell does not name",
    "runs_download": "it runs what it downloads",
    "sends_data_after": "it sends data out after the agent has read text from {}",
    "starts_kernel": "it starts a kernel whose agents may change {}",
    "starts_program": "it starts the program {}",
    "stops_cell": "it stops the running cell ({})",
    "stops_machine": "it stops the machine",
    "uses_credentials": "it uses credentials: {}",
    "uses_files": "it uses {} files, too many to look at each",
    "uses_hidden": "it uses {}, which sandboxes hide",
    "uses_such_files": "it uses {} such files",
    "writes_file": "it writes {}",
    "writes_outside": "it writes outside of the workspace: {}",
}
"""Sentences as clauses, in the syntax of ``str.format`` with the parameters by position."""


@dataclass(frozen=True, order=True, slots=True)
class Reason:
    """A reason to ask a person; its text is the clause that follows "because".

    Attributes:
        code: The kind of reason.
        parameters: Paths, hosts or names, in the order of the sentence.
    """

    code: ReasonCode
    parameters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown code, or if a parameter is missing."""
        if self.code not in SENTENCES:
            raise ValueError(f"there is no reason {self.code!r:.100}")
        try:
            str(self)
        except IndexError:
            raise ValueError(
                f"the reason {self.code!r} lacks a parameter: {self.parameters!r:.200}"
            ) from None

    def __str__(self) -> str:
        return SENTENCES[self.code].format(*self.parameters)
