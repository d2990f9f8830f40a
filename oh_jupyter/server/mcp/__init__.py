"""MCP: the runtime's actions, the skills and the open notebooks as tools for any agent.

``asgi`` connects requests to the official SDK's transports, ``endpoints`` holds the sessions of
each kernel, ``toolbox`` the tools that they call. The SDK is imported for the first client.
"""
