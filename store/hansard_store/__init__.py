"""SQLite, the source of truth."""
