"""Cells of agents in the shell that oh_jupyter was loaded into."""
