"""Heartbeat cycles, the results of their phases, and diagnostics."""
