"""The tables of the ledger: everything that must survive the end of a kernel, on one page.

Paths are bytes, because names of files need not be UTF-8. Times are seconds since the epoch.
"""

VERSION = 1
"""Number of the layout; SQLite stores it as ``user_version``."""

TABLES = """
CREATE TABLE IF NOT EXISTS identity(name TEXT NOT NULL);
"""
