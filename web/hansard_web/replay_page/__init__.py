"""The pages of a replay: its form, preview and result."""
