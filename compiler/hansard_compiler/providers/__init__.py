"""Adapters that make a provider's request of a compiled context, send it, and read the response."""
