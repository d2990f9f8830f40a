"""Store in a local directory."""
