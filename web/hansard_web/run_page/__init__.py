"""The page of one run: its head, tree, waterfall, conversation and log."""
