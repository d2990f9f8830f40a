"""Agents' cells in the shell that loaded oh_jupyter."""
