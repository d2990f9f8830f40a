"""The shell room: one persistent shell behind the protocol's ``run`` action.

::

    with BashSession("/tmp") as session:
        print(session.execute(CmdRunAction("ls")).content)

``PowerShellSession`` is the same over PowerShell, for Windows; ``ShellSession`` is what both are.
"""

from oh_jupyter.shell.bash.session import BashSession
from oh_jupyter.shell.environment import ShellSnapshot
from oh_jupyter.shell.powershell.session import PowerShellSession
from oh_jupyter.shell.session import ShellSession

__all__ = ["BashSession", "PowerShellSession", "ShellSession", "ShellSnapshot"]
