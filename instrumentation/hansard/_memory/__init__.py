"""Reads and writes of memory as steps."""
