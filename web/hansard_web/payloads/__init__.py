"""Payloads by reference: API and command."""
