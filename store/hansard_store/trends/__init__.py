"""Counts of calls over time, as baselines of trends."""
