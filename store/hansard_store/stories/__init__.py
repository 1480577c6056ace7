"""Stories of outside sources: rows and the one way to write them."""
