"""Bash on a pseudo-terminal."""
