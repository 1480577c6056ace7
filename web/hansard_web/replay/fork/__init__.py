"""A replay that goes on through the later turns of the run."""
