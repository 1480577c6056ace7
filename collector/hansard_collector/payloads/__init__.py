"""Payloads that spans name: received, joined with their spans, and reduced by retention."""
