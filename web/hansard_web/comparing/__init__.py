"""Any two steps or runs of the store, compared: one and the same for API, pages and commands."""
