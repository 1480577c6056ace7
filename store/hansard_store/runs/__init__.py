"""Runs: projection, status, lists, filters, groups, conversations and usage."""
