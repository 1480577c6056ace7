"""Trends: error rates, latency, use and memory compared over hours, days and weeks."""
