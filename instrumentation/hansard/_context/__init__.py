"""Compiling the context of a model call, and the span that records it."""
