"""SQLite store: connections, migrations, one writer, and the SQL of every noun."""
