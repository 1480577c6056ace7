"""Transcripts: rows, reads, archives."""
