"""Views of the run list, saved by name."""
