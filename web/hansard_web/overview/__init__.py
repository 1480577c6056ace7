"""Figures over time: cost, calls, tokens, latency, errors, and what they were before."""
