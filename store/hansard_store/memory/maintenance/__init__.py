"""Maintenance of memory in the store: pairs to compare, verdicts, supersessions, vectors."""
