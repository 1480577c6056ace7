"""Status reports: page, API and command."""
