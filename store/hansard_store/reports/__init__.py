"""Status reports: their contents, files and audit events."""
