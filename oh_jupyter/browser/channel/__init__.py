"""What crosses the pipe between BrowserEnv and its worker."""
