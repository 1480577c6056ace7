"""Upkeep of a store: backup, deletion, garbage collection, export."""
