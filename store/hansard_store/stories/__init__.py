"""Stories of outside sources: rows and the service that writes them."""
