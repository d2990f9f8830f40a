"""Worker process: Playwright, the page, actions and observations."""
