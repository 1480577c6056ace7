"""Checks of `hansard verify` that need what derives rows."""
