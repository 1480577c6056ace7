"""Memory: page, API and command."""
