"""Receipts across runs: page, API and command."""
