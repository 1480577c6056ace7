"""Tokens and cost: page, API and command."""
