"""The process: its recorder, name, data folder, locks, forks and warnings."""
