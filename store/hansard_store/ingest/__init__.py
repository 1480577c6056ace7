"""Ingest writer: rows of received spans, logs and metrics, and of what is derived from them."""
