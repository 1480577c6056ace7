"""Latency and cost of models, tools and agents."""
