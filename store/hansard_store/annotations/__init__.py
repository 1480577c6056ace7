"""Annotations: notes, scores and tags on runs and steps."""
