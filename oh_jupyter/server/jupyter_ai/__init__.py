"""Jupyter AI: a persona in its chat that works in the kernel of an open notebook.

``persona`` is the class that Jupyter AI finds by the entry point group ``jupyter_ai.personas``,
``notebook_choice`` finds the notebook that a message means, and ``turn_text`` writes an agent's
turn as Markdown. ``shared_tools`` are our tools in jupyter-server-mcp, which serves Jupyter AI's
agents. Nothing here is imported without Jupyter AI.
"""
