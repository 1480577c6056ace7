"""Comparisons of two steps, runs or compiles: bodies, page, API and command."""
