"""Store maintenance: backup, deletion, garbage collection, export and rebuild progress."""
