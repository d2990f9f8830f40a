"""The tools of this kernel's guests: MCP without a server.

``GuestToolbox`` offers to one agent the same tools as a Jupyter server offers to others. They work
in this process: ``own_kernel`` calls the operations of the control channel without the channel,
and ``files`` has notebooks as files. Where a server has this kernel, people look at its notebooks
in tabs, which only the server can change, so ``server_tools`` passes those calls on.
"""
