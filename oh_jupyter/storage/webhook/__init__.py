"""Webhooks: changes of a store, reported in order and at least once."""
