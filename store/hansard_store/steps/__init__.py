"""Steps: the tree of a run and the details of one step."""
