"""The geometry of runs: what is shown of a tree, where its bars stand, what is kept of it."""
