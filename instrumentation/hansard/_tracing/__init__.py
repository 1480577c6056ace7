"""Spans and context: begun, entered, left and ended, and what they carry."""
