"""Webhooks: report changes of a store in order and at least once."""
