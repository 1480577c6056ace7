"""Notes, scores and tags: panel, data set, API and command."""
