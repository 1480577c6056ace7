"""Full text search: page, API and command."""
