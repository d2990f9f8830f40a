"""Persistent shell behind the protocol's ``run`` action.

::

    with BashSession("/tmp") as session:
        print(session.execute(CmdRunAction("ls")).content)
"""

from oh_jupyter.shell.bash import BashSession
from oh_jupyter.shell.environment import ShellSnapshot
from oh_jupyter.shell.powershell import PowerShellSession
from oh_jupyter.shell.session import ShellSession

__all__ = ["BashSession", "PowerShellSession", "ShellSession", "ShellSnapshot"]
