"""Counts of calls over time, for comparisons of one time with another."""
