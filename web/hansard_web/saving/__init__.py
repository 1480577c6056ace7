"""A run or a comparison as one HTML file: no script, no request, nothing beside the file."""
