"""The table of sources for each field of the normal form."""
