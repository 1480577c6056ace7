"""Transcripts: pages, API and commands."""
