"""Receivers, the ingest pipeline and the dialects it understands."""
