"""Sending a request to a provider: the exchange, its recording, and what can fail."""
