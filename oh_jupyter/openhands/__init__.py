"""OpenHands' SDK (V1) on the runtime: its tools, and an agent's loop beside the kernel.

Importing it registers the tools under the SDK's own names, so that a stock agent works in a
kernel of ``oh_jupyter``: in this process if it is a kernel that has loaded the extension, otherwise
in the one that ``OH_URL`` and ``OH_TOKEN`` name. ::

    import oh_jupyter.openhands
    from openhands.sdk import LLM, Agent, Conversation, Tool

    names = ("terminal", "file_editor", "browser_tool_set", "ipython", "notebook")
    agent = Agent(llm=LLM(model="..."), tools=[Tool(name=name) for name in names])
    conversation = Conversation(agent=agent, workspace=".")
    conversation.send_message("Why is df empty?")
    oh_jupyter.openhands.run(conversation)

It needs the extra ``openhands``, and Python 3.12 or later.
"""

from oh_jupyter.openhands.browser_tools import KernelBrowserToolSet
from oh_jupyter.openhands.connection import connect
from oh_jupyter.openhands.conversation import run
from oh_jupyter.openhands.tools import (
    IPythonTool,
    KernelFileEditorTool,
    KernelTerminalTool,
    NotebookTool,
)

__all__ = [
    "IPythonTool",
    "KernelBrowserToolSet",
    "KernelFileEditorTool",
    "KernelTerminalTool",
    "NotebookTool",
    "connect",
    "run",
]
