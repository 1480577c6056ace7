"""Ledger: counts of received, stored, duplicate and rejected items, by sender and signal."""
