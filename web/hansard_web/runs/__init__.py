"""Runs: list, filters, rows, API and command."""
