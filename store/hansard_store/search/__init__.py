"""Full-text search, attribute search and their indexes."""
