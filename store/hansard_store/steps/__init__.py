"""Steps of a run: tree, queries, flags and span ids that a client and a server share."""
