"""Transcripts that end with the process."""
