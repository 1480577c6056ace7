"""The application: server, settings, security, middleware and the answers to errors."""
