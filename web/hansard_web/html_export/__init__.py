"""A run or a comparison as one HTML file."""
