"""Figures over time: counts, tokens, cost and latency of runs, by hour or day and by dimension."""
