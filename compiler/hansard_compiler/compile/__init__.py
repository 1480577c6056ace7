"""A compile: one request in, one prompt and a receipt for every candidate out."""
