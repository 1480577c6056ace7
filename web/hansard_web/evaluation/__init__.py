"""Verdicts on claims: panel, API and command."""
