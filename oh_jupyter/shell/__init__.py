"""The shell room: one persistent bash behind the protocol's ``run`` action.

::

    with BashSession("/tmp") as session:
        print(session.execute(CmdRunAction("ls")).content)
"""

from oh_jupyter.shell.session import BashSession

__all__ = ["BashSession"]
