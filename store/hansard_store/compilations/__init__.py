"""Compiles, their receipts and outcomes."""
