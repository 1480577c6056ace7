"""Review tasks: rows, JSON and the service that writes them."""
