"""Agent frameworks on a notebook's kernel, one module each.

Each module has the class that its framework calls, and needs the framework's package, which the
extra of the same name installs.
"""
