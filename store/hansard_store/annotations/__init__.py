"""Notes, scores and tags on runs and steps."""
