"""The tools that agents get over MCP, wherever these are served.

A Jupyter server offers them to agents from outside, and a kernel to its guests. ``tool_list`` has
all tools, ``toolbox`` lists and calls them. They reach a kernel through ``kernel.Kernel`` and
notebooks through ``notebooks.Notebooks``, which the server and the kernel each implement.
"""
