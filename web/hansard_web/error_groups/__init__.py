"""Groups of errors: pages, API and command."""
