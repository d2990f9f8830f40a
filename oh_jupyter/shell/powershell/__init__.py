"""PowerShell on pipes."""
