"""Payloads: content that spans name by digest, stored until the collector has it."""
