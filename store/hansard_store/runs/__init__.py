"""Runs: the projection of a trace, its lists, groups and figures."""
