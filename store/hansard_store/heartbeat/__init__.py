"""The heartbeat's record: cycles, the results of their phases, and diagnostics."""
