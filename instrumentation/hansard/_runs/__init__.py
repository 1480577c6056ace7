"""Runs and steps reported one by one, for programs that no decorator fits."""
