"""Verdicts on claims, as pages show them."""
