"""MCP: the runtime's actions, the skills and the open notebooks as tools for any agent.

``asgi`` carries requests to the official SDK's transports, ``endpoint`` holds the
sessions of one kernel, ``toolbox`` is what they can call. The SDK is imported when the
first client comes; everything outside ``endpoint`` and ``launcher`` is plain data.
"""
