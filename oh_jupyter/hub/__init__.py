"""A JupyterHub service: one MCP address for the servers of a hub's users.

``service`` runs it and ``handlers`` has its endpoints. For MCP clients it is an OAuth authorization
server in front of the hub (``clients``, ``client_documents``, ``grants``, ``tokens``,
``discovery``), and it passes their requests on to the server of the user who authorized them
(``relay``).
"""
