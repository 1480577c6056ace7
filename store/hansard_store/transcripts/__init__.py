"""Transcripts: rows, queries, service and archives."""
