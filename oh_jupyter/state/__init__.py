"""The ledger: one SQLite database for what must survive the end of a kernel."""
