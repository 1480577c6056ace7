"""Derived rows of spans and log records: made when they arrive, and made again."""
