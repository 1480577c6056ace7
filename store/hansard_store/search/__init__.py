"""Full-text search over what was said, and over attributes."""
