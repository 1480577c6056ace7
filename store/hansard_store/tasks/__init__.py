"""Tasks for review: rows and the one way to write them."""
