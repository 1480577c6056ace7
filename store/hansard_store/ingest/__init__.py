"""Rows of what was received: spans, logs and the writer that stores them."""
