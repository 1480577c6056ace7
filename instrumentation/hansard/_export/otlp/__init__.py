"""Batches over OTLP: encoding, one attempt through the stock exporters, and its result."""
