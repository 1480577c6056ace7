"""Transcripts: messages, views, cost and checks, without a store."""
