"""Tasks for review: page, API and command."""
