"""The worker process: Playwright, the page, actions and observations."""
